import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Login } from "../../domain/people/login.ts";
import { ConfirmButton } from "../elements/dialog.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { Ago, Day } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { leavePush } from "../push.ts";
import { client } from "../query.ts";
import { useSettingsTexts } from "../texts/settings.ts";
import { Section } from "./section.tsx";

/** Signed-in browsers, each with a button to sign it out. */
export function SignIns() {
  const texts = useSettingsTexts().signIns;
  return (
    <Section id="sign-ins" title={texts.title}>
      <PagedList
        label={texts.title}
        queryKey={["logins"]}
        readPage={(cursor) => client.login.list({ limit: 20, cursor })}
        itemsOf={(page) => page.logins}
        empty={texts.none}
        className="divide-y divide-line"
      >
        {(login) => <Row key={login.id} login={login} />}
      </PagedList>
    </Section>
  );
}

function Row({
  login: { id, by, name, current, address, userAgent, createdAt, lastUsedAt, expiresAt },
}: {
  login: Login;
}) {
  const { used, ends, signIns: texts } = useSettingsTexts();
  const queries = useQueryClient();
  const revoke = useMutation({
    mutationFn: async () => {
      if (current) await leavePush();
      return client.login.revoke(id);
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ["logins"] }),
  });
  const who = by === "link" ? texts.byLink : (name ?? "");
  return (
    <li className="flex items-center gap-x-3 py-2 text-sm">
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-baseline gap-x-3">
          <span className="font-medium wrap-anywhere">{by === "key" ? texts.byKey(who) : who}</span>
          {current && <span className="text-muted">{texts.current}</span>}
        </p>
        <p className="text-muted wrap-anywhere">
          {address !== null && `${address} · `}
          {texts.since} <Ago at={createdAt} />
          {lastUsedAt !== null && (
            <>
              {" "}
              · {used} <Ago at={lastUsedAt} />
            </>
          )}{" "}
          · {ends} <Day at={expiresAt} />
        </p>
        {userAgent !== null && <p className="truncate text-xs text-muted">{userAgent}</p>}
        <ErrorText error={revoke.error} />
      </div>
      <ConfirmButton
        button={texts.end}
        of={`${who}, ${userAgent ?? texts.unknown}`}
        disabled={revoke.isPending}
        question={current ? texts.endCurrentQuestion : texts.endQuestion}
        onConfirm={() => revoke.mutate()}
      >
        {texts.endAbout}
      </ConfirmButton>
    </li>
  );
}
