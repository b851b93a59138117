import Fastify from "fastify";
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from "fastify-type-provider-zod";
import pg from "pg";
import { PgBoss } from "pg-boss";
import { z } from "zod";

/**
 * A minimal server that only takes in prompts, with the same HTTP server and the same checking of fields as ours:
 * `/bare` commits two rows in a transaction, `/boss` gives a job to pg-boss. No key, no limit, no event, no audit. A
 * separate process; the database's address is its argument. It reports its address by IPC.
 */
async function serve(databaseUrl: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 20 });
  await pool.query("create table bench_one (id uuid primary key, body jsonb not null)");
  await pool.query("create table bench_two (id bigint generated always as identity primary key, one uuid not null)");
  const boss = new PgBoss({ connectionString: databaseUrl, max: 20, supervise: false, schedule: false });
  await boss.start();
  await boss.createQueue("bench");
  const app = Fastify().withTypeProvider<ZodTypeProvider>();
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  const schema = {
    body: z.object({ prompt: z.string().min(1).max(100_000), title: z.string().max(200).optional() }),
    response: { 200: z.object({ id: z.string(), status: z.string(), createdAt: z.string() }) },
  };
  app.post("/bare", { schema }, async ({ body }) => {
    const client = await pool.connect();
    try {
      const id = crypto.randomUUID();
      await client.query("begin");
      await client.query("insert into bench_one (id, body) values ($1, $2)", [id, JSON.stringify(body)]);
      await client.query("insert into bench_two (one) values ($1)", [id]);
      await client.query("commit");
      return { id, status: "queued", createdAt: new Date().toISOString() };
    } finally {
      client.release();
    }
  });
  app.post("/boss", { schema }, async ({ body }) => {
    const id = await boss.send("bench", body);
    return { id: id ?? "", status: "queued", createdAt: new Date().toISOString() };
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  process.send?.({ url });
  await new Promise<void>((resolve) => process.once("disconnect", () => resolve()));
  await app.close();
  await boss.stop({ graceful: false });
  await pool.end();
}

const [, , databaseUrl] = process.argv;
if (process.send !== undefined && databaseUrl !== undefined) await serve(databaseUrl);
