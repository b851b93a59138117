import { expect, test } from "vitest";
import { createMailer } from "../../src/channels/mail.ts";
import { startMailServer } from "./receivers.ts";

const mailTo = (address: string) => ({
  id: crypto.randomUUID(),
  to: { name: "Ada", address },
  subject: "A mail",
  text: "A mail.",
  html: "<p>A mail.</p>",
  unsubscribeUrl: null,
});

test("a mail that the server keeps waiting is given back after its time, or at once if it must, and its connection goes to the next", async () => {
  const server = await startMailServer({ startTls: false });
  const settings = { host: "127.0.0.1", port: server.port, tls: "none", user: null, password: null } as const;
  const from = "offstage@company.example";
  server.slow.add("slow@company.example");
  const hasty = createMailer({ ...settings, from }, { connections: 1, timeLimitMs: 1 });
  const patient = createMailer({ ...settings, from }, { connections: 1 });
  try {
    expect(await hasty.send(mailTo("slow@company.example"))).toEqual({
      status: "refused",
      passing: true,
      words: "The mail server did not take the mail within 0.001 s",
    });
    const hurry = new AbortController();
    const held = patient.send(mailTo("slow@company.example"), hurry.signal);
    const next = patient.send(mailTo("ada@company.example"));
    await expect.poll(() => server.waiting).toBeGreaterThan(0);
    hurry.abort();
    expect(await held).toMatchObject({ status: "refused", passing: true });
    expect(await next).toEqual({ status: "sent" });
    expect(server.mails.map(({ to }) => to)).toEqual([["ada@company.example"]]);
  } finally {
    hasty.close();
    patient.close();
    await server.close();
  }
});
