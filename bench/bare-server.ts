import Fastify from "fastify";
import pg from "pg";

/**
 * A minimal server that only takes in webhooks: the same HTTP server as ours, its own reading of JSON, and one insert
 * of the payload under the delivery's id, committed before the answer, by a pool as large as ours. No signature, no
 * condition, no queue. A separate process; the database's address is its argument. It reports its address by IPC.
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
