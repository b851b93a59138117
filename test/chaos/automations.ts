import { post, type Senders } from "./requests.ts";
import type { ChaosFleet } from "./fleet.ts";

/** The repository that the schedule's runs work on. */
export const tickRepository = "chaos-ticks";

/** The automation that a schedule starts each minute. */
export interface Ticking {
  readonly automationId: string;
  readonly triggerId: string;
}

interface Made {
  readonly id: string;
  readonly triggers: readonly { readonly id: string; readonly secret?: string }[];
}

/** What every run does with its event. */
function instructions(number: string, content: string): string {
  return `write work-{{ ${number} }}.txt: {{ ${content} }}, then shell sleep 0.5, then write more-{{ ${number} }}.txt: more`;
}

/** Connects the forge, which delivers what happens on it to the first node, and adds to each repository an automation for each way in which a run can be asked for. */
export async function addAutomations(fleet: ChaosFleet, names: readonly string[]): Promise<Senders> {
  const create = (macro: string, body: object) =>
    post<Made>(fleet, "/automation/create", { name: macro, macro, ...body }, null);
  const connection = await post<{ readonly id: string; readonly webhookSecret: string }>(
    fleet,
    "/connection/create",
    {
      kind: "github",
      name: "chaos",
      webUrl: fleet.forge.url,
      apiUrl: fleet.forge.apiUrl,
      credential: { type: "configured" },
    },
    null,
  );
  // Its own comments and pushes come back, too: nothing may come of them, and nothing if they don't.
  const url = `${fleet.apis[0]?.url}/hook/forge/${connection.id}`;
  fleet.forge.deliverTo([{ kind: "github", url, secret: connection.webhookSecret }]);
  const webhooks = new Map<string, { readonly id: string; readonly secret: string }>();
  for (const name of names) {
    const repositories = [`${fleet.forge.url}/acme/${name}`];
    const settings = { instructions: instructions("event.number", "event.content"), repositories };
    await create(name, settings);
    const verify = { type: "hmac", header: "X-Signature", algorithm: "sha256", encoding: "hex", prefix: "sha256=" };
    const { triggers } = await create(`hook-${name}`, { ...settings, triggers: [{ type: "webhook", verify }] });
    const hook = triggers.find(({ secret }) => secret !== undefined);
    if (hook?.secret === undefined) throw new Error(`the webhook of ${name} has no secret`);
    webhooks.set(name, { id: hook.id, secret: hook.secret });
    await create(`event-${name}`, {
      instructions: instructions("event.issue.number", "event.issue.title"),
      triggers: [
        {
          type: "forge",
          connectionId: connection.id,
          events: ["issue.opened"],
          repositories: [`${new URL(fleet.forge.url).host}/acme/${name}`],
        },
      ],
    });
  }
  return { connection: { id: connection.id, secret: connection.webhookSecret }, webhooks };
}

/** Adds the automation of which each minute has one run. */
export async function addSchedule(fleet: ChaosFleet): Promise<Ticking> {
  const { id, triggers } = await post<Made>(
    fleet,
    "/automation/create",
    {
      name: "ticks",
      macro: "ticks",
      instructions: "write tick.txt: {{ event.scheduledAt }}",
      repositories: [`${fleet.forge.url}/acme/${tickRepository}`],
      triggers: [{ type: "schedule", cron: "* * * * *", timeZone: "UTC", missed: "runOnce" }],
    },
    null,
  );
  const triggerId = triggers.find((trigger) => trigger.id !== id)?.id;
  if (triggerId === undefined) throw new Error("the schedule has no trigger");
  return { automationId: id, triggerId };
}
