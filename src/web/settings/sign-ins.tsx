import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Login } from "../../domain/people/login.ts";
import { ConfirmButton } from "../elements/dialog.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { Ago, Day } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";

/** Signed-in browsers, each with a button to sign it out. */
export function SignIns() {
  return (
    <section aria-labelledby="sign-ins" className="card space-y-4 p-4">
      <h2 id="sign-ins" className="font-medium">
        Signed-in browsers
      </h2>
      <PagedList
        label="Signed-in browsers"
        queryKey={["logins"]}
        readPage={(cursor) => client.login.list({ limit: 20, cursor })}
        itemsOf={(page) => page.logins}
        empty="No browser is signed in."
        className="divide-y divide-line"
      >
        {(login) => <Row key={login.id} login={login} />}
      </PagedList>
    </section>
  );
}

function Row({
  login: { id, by, name, current, address, userAgent, createdAt, lastUsedAt, expiresAt },
}: {
  login: Login;
}) {
  const queries = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => client.login.revoke(id),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["logins"] }),
  });
  const who = by === "link" ? "By a one-time link" : (name ?? "");
  return (
    <li className="flex items-center gap-x-3 py-2 text-sm">
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-baseline gap-x-3">
          <span className="font-medium wrap-anywhere">{by === "key" ? `By the key ${who}` : who}</span>
          {current && <span className="text-muted">this browser</span>}
        </p>
        <p className="text-muted wrap-anywhere">
          {address !== null && `${address} · `}
          signed in <Ago at={createdAt} />
          {lastUsedAt !== null && (
            <>
              {" "}
              · used <Ago at={lastUsedAt} />
            </>
          )}{" "}
          · ends <Day at={expiresAt} />
        </p>
        {userAgent !== null && <p className="truncate text-xs text-muted">{userAgent}</p>}
        <ErrorText error={revoke.error} />
      </div>
      <ConfirmButton
        button="Sign out"
        of={`${who}, ${userAgent ?? "an unknown browser"}`}
        disabled={revoke.isPending}
        question={current ? "Sign this browser out?" : "Sign that browser out?"}
        onConfirm={() => revoke.mutate()}
      >
        It is refused from then on, until somebody signs in there again.
      </ConfirmButton>
    </li>
  );
}
