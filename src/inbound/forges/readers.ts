import { forgeEventSchema, type ForgeEvent } from "../../domain/automations/forge-event.ts";
import type { DeliveryReader } from "../delivery.ts";
import { azure } from "./azure.ts";
import { bitbucketDataCenter } from "./bitbucket-data-center.ts";
import { bitbucket } from "./bitbucket.ts";
import { gitea } from "./gitea.ts";
import { github } from "./github.ts";
import { gitlab } from "./gitlab.ts";

/** A kind of forge that delivers events; Forgejo is of the kind `gitea`. */
export type DeliveringForge = ForgeEvent["forge"];

/** See `DeliveringForge`. */
export const deliveringForges: readonly DeliveringForge[] = forgeEventSchema.shape.forge.options;

const readers: Readonly<Record<DeliveringForge, DeliveryReader>> = {
  github,
  gitlab,
  gitea,
  bitbucket,
  bitbucketDataCenter,
  azure,
};

/** The reader of a kind of forge's deliveries. */
export function readerOf(kind: DeliveringForge): DeliveryReader {
  return readers[kind];
}
