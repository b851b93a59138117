import { createHash } from "node:crypto";
import Fastify from "fastify";
import pg from "pg";
import { newId } from "../src/domain/fields/new-id.ts";
import { readerOf } from "../src/inbound/forges/readers.ts";

/**
 * A minimal server that only takes in webhooks: the same HTTP server as ours, its own reading of JSON, and one insert
 * of the payload under the delivery's id, committed before the answer, by a pool as large as ours. No signature, no
 * condition, no queue. A separate process; the database's address is its argument. It reports its address by IPC.
 *
 * It has two more paths, which show what of our time are the rows that we write: each writes by hand, in one statement, the same rows into
 * the same tables as a delivery to a trigger or to a connection of GitHub, and does nothing else.
 */
async function serve(databaseUrl: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 20 });
  await pool.query("create table bench_event (id uuid primary key, key text unique, body jsonb not null)");
  const app = Fastify();
  app.post("/event", async (request, reply) => {
    const id = crypto.randomUUID();
    await pool.query({
      name: "insert_event",
      text: "insert into bench_event (id, key, body) values ($1, $2, $3) on conflict do nothing",
      values: [id, request.headers["webhook-id"], JSON.stringify(request.body)],
    });
    return reply.status(202).send({ outcome: "accepted", id });
  });
  app.post<{ Params: { id: string } }>("/rows/trigger/:id", async (request, reply) => {
    const body = JSON.stringify(request.body);
    const hash = createHash("sha256").update(body).digest("base64url");
    const minute = Math.floor(Date.now() / 60_000);
    const id = newId();
    await pool.query({
      name: "rows_of_trigger",
      text: `with noted as (
          insert into received_key (organization_id, scope, key, ledger_id)
          select $2, $4, key, $1 from unnest($5::text[]) as key on conflict do nothing)
        insert into job (id, organization_id, automation_id, trigger_id, priority, payload) values ($1, $2, $3, $4, 5, $6)`,
      values: [
        id,
        ...(await ownersOf(request.params.id)),
        request.params.id,
        [
          `delivery:${String(request.headers["webhook-id"])}`,
          `content:${hash}:${minute}`,
          `content:${hash}:${minute + 1}`,
        ],
        body,
      ],
    });
    return reply.status(202).send({ outcome: "accepted", id });
  });
  app.post<{ Params: { id: string } }>("/rows/connection/:id", async (request, reply) => {
    const headers = request.headers as Record<string, string>;
    const { deliveryId, events } = readerOf("github").read({
      headers,
      body: Buffer.from(JSON.stringify(request.body)),
    });
    const [event] = events;
    const id = newId();
    await pool.query({
      name: "rows_of_connection",
      text: `with noted as (
          insert into received_key (organization_id, scope, key, ledger_id)
          select $2, $3, key, $1 from unnest($4::text[]) as key on conflict do nothing)
        insert into arrival (id, organization_id, connection_id, name, delivery_id, content_key, subject, payload)
        values ($1, $2, $3, $5, $6, $7, $8, $9)`,
      values: [
        id,
        await organizationOf(),
        request.params.id,
        [`delivery:${deliveryId} ${event?.contentKey}`, `content:${event?.contentKey}`],
        event?.name,
        deliveryId,
        event?.contentKey,
        event?.subject,
        JSON.stringify(event?.event),
      ],
    });
    return reply.status(202).send({ outcome: "accepted", id });
  });
  const owners = new Map<string, [string, string]>();
  async function ownersOf(triggerId: string): Promise<[string, string]> {
    const known = owners.get(triggerId);
    if (known !== undefined) return known;
    const { rows } = await pool.query<{ organization: string; automation: string }>(
      "select organization_id as organization, automation_id as automation from trigger where id = $1",
      [triggerId],
    );
    const found: [string, string] = [rows[0]?.organization ?? "", rows[0]?.automation ?? ""];
    owners.set(triggerId, found);
    return found;
  }
  let organization: string | null = null;
  async function organizationOf(): Promise<string> {
    if (organization !== null) return organization;
    const { rows } = await pool.query<{ id: string }>("select id from organization");
    return (organization = rows[0]?.id ?? "");
  }
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  process.on("message", () => process.send?.({ cpuMs: cpuMs() }));
  process.send?.({ url });
  await new Promise<void>((resolve) => process.once("disconnect", () => resolve()));
  await app.close();
  await pool.end();
}

/** Processor time of this process until now, in ms. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

const [, , databaseUrl] = process.argv;
if (process.send !== undefined && databaseUrl !== undefined) await serve(databaseUrl);
