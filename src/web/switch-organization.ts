import { client } from "./query.ts";

/** How the windows of a browser tell each other: they have one cookie. */
const channelName = "organization";

/**
 * Signs the browser in to another organization of whoever is signed in, and begins anew in every window: nothing of the one before is to
 * be shown, or sent, in the other.
 */
export async function switchOrganization(organizationId: string): Promise<void> {
  await client.call("emptySchema", "/login/switch", { organizationId });
  const channel = new BroadcastChannel(channelName);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel is of one origin
  channel.postMessage(organizationId);
  channel.close();
  beginAnew();
}

/** Begins anew when another window switches. @returns ends that */
export function followSwitches(): () => void {
  const channel = new BroadcastChannel(channelName);
  channel.addEventListener("message", beginAnew);
  return () => channel.close();
}

function beginAnew(): void {
  location.assign("/");
}
