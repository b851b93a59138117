import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Grant } from "../../domain/people/grant.ts";
import { ConfirmButton } from "../elements/dialog.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { Ago, Day } from "../elements/time.tsx";
import { ErrorText } from "../layout.tsx";
import { client } from "../query.ts";

/** Programs that people let act for them, each with a button that ends it. */
export function Programs() {
  return (
    <section aria-labelledby="programs" className="card space-y-4 p-4">
      <h2 id="programs" className="font-medium">
        Programs
      </h2>
      <p className="text-sm text-muted">Editors, agents and command lines that were let act for a person.</p>
      <PagedList
        label="Programs"
        queryKey={["grants"]}
        readPage={(cursor) => client.grant.list({ limit: 20, cursor })}
        itemsOf={(page) => page.grants}
        empty="No program was let act for anybody."
        className="divide-y divide-line"
      >
        {(grant) => <Row key={grant.id} grant={grant} />}
      </PagedList>
    </section>
  );
}

function Row({
  grant: { id, clientName, by, name, scopes, resource, address, createdAt, lastUsedAt, expiresAt },
}: {
  grant: Grant;
}) {
  const queries = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => client.grant.revoke(id),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["grants"] }),
  });
  const who = by === "link" ? "whoever opened a one-time link" : (name ?? "");
  return (
    <li className="flex items-center gap-x-3 py-2 text-sm">
      <div className="min-w-0 flex-1">
        <p className="font-medium wrap-anywhere">
          <bdi>{clientName}</bdi>
        </p>
        <p className="text-muted wrap-anywhere">
          for {by === "key" ? `the key ${who}` : who} · {scopes.join(", ")}
          {resource === "mcp" && " by the MCP server"}
          {address !== null && ` · ${address}`} · allowed <Ago at={createdAt} />
          {lastUsedAt !== null && (
            <>
              {" "}
              · used <Ago at={lastUsedAt} />
            </>
          )}{" "}
          · ends <Day at={expiresAt} /> unless it is used
        </p>
        <ErrorText error={revoke.error} />
      </div>
      <ConfirmButton
        button="End"
        of={`${clientName} for ${who}`}
        disabled={revoke.isPending}
        question={`End what ${clientName} may do?`}
        onConfirm={() => revoke.mutate()}
      >
        It is refused from then on, until somebody lets it act again.
      </ConfirmButton>
    </li>
  );
}
