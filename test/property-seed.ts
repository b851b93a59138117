import fc from "fast-check";

// Properties are tried on the same cases each time, so that a change is never refused for what another one broke. To look for more,
// run them with another seed, or with `random` for one that the failure names: OFFSTAGE_PROPERTY_SEED=random npx vitest run src.
const seed = process.env["OFFSTAGE_PROPERTY_SEED"] ?? "20261126";
if (seed !== "random") fc.configureGlobal({ seed: Number(seed) });
