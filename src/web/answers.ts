// First: the page's policy forbids evaluated code, and schemas read the setting when they are created.
import "./strict-policy.ts";

export * from "../client-schemas.ts";
