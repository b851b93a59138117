import { useMutation } from "@tanstack/react-query";
import { createContext, use } from "react";
import type { SessionDetail } from "../../../domain/sessions/session.ts";
import { ErrorText } from "../../elements/notice.tsx";
import { client, useMay } from "../../query.ts";
import { useSessionTexts } from "../../texts/session.ts";
import type { Item } from "../view/view.ts";

/** The session's repositories, for which a refused host can be allowed. */
export const RepositoriesContext = createContext<SessionDetail["repositories"]>([]);

type Refused = Pick<Extract<Item, { kind: "refused" }>, "host" | "port" | "reason" | "named">;

/** A host that the sandbox was refused, with buttons to allow it for a repository from the next turn on, for those who may. */
export function RefusedHost({ host, port, reason, named }: Refused) {
  const texts = useSessionTexts().refused;
  const repositories = use(RepositoriesContext);
  const may = useMay("admin");
  const destination = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  return (
    <div className="rounded-md bg-warn-soft px-3 py-2 text-sm text-warn">
      <p className="break-words">
        {texts.refused} <code>{destination}</code>: {texts.reasons[reason]}
        {named !== undefined && (
          <>
            {" "}
            (<code>{named}</code>)
          </>
        )}
        .
      </p>
      {reason === "not allowed" &&
        may &&
        repositories.map(({ id, name }) => <Allow key={id} repositoryId={id} name={name} place={destination} />)}
    </div>
  );
}

function Allow({ repositoryId, name, place: destination }: { repositoryId: string; name: string; place: string }) {
  const texts = useSessionTexts().refused;
  const allow = useMutation({ mutationFn: () => client.repository.allow(repositoryId, destination) });
  if (allow.isSuccess) return <output className="mt-1 block">{texts.allowed(name)}</output>;
  return (
    <div className="mt-2 flex flex-wrap items-center gap-3">
      <button type="button" className="button" disabled={allow.isPending} onClick={() => allow.mutate()}>
        {texts.allow(name)}
      </button>
      <ErrorText error={allow.error} />
    </div>
  );
}
