import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Grant } from "../../domain/people/grant.ts";
import { ConfirmButton } from "../elements/dialog.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { Ago, Day } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";
import { useSettingsTexts } from "../texts/settings.ts";
import { Section } from "./section.tsx";

/** Programs that people let act for them, each with a button that ends it. */
export function Programs() {
  const texts = useSettingsTexts().programs;
  return (
    <Section id="programs" title={texts.title}>
      <p className="text-sm text-muted">{texts.about}</p>
      <PagedList
        label={texts.title}
        queryKey={["grants"]}
        readPage={(cursor) => client.grant.list({ limit: 20, cursor })}
        itemsOf={(page) => page.grants}
        empty={texts.none}
        className="divide-y divide-line"
      >
        {(grant) => <Row key={grant.id} grant={grant} />}
      </PagedList>
    </Section>
  );
}

function Row({
  grant: { id, clientName, by, name, scopes, resource, address, createdAt, lastUsedAt, expiresAt },
}: {
  grant: Grant;
}) {
  const words = useSettingsTexts();
  const texts = words.programs;
  const queries = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => client.grant.revoke(id),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["grants"] }),
  });
  const who = by === "link" ? texts.whoeverHadLink : (name ?? "");
  return (
    <li className="flex items-center gap-x-3 py-2 text-sm">
      <div className="min-w-0 flex-1">
        <p className="font-medium wrap-anywhere">
          <bdi>{clientName}</bdi>
        </p>
        <p className="text-muted wrap-anywhere">
          {by === "key" ? texts.forKey(who) : texts.for(who)} · {scopes.map((scope) => words.scopes[scope]).join(", ")}
          {resource === "mcp" && texts.byMcp}
          {address !== null && ` · ${address}`} · {texts.allowed} <Ago at={createdAt} />
          {lastUsedAt !== null && (
            <>
              {" "}
              · {words.used} <Ago at={lastUsedAt} />
            </>
          )}{" "}
          · {words.ends} <Day at={expiresAt} />
          {texts.unlessUsed}
        </p>
        <ErrorText error={revoke.error} />
      </div>
      <ConfirmButton
        button={texts.end}
        of={texts.of(clientName, who)}
        disabled={revoke.isPending}
        question={texts.endQuestion(clientName)}
        onConfirm={() => revoke.mutate()}
      >
        {texts.endAbout}
      </ConfirmButton>
    </li>
  );
}
