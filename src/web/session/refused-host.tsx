import { useMutation } from "@tanstack/react-query";
import { createContext, use } from "react";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { ErrorText } from "../layout.tsx";
import { client, useMay } from "../query.ts";

/** The session's repositories, for which a refused host can be allowed. */
export const RepositoriesContext = createContext<SessionDetail["repositories"]>([]);

const reasons = {
  "not allowed": "it is not on the list of what this sandbox may reach",
  "private address": "it is a private address, which no sandbox may reach by name",
  "other name": "the connection was meant for another host at the same address",
  "no name": "the connection did not say in the clear for which host it is meant",
  "other protocol": "the connection was neither TLS nor HTTP",
};

interface Refused {
  readonly host: string;
  readonly port: number;
  readonly reason: keyof typeof reasons;
  readonly named?: string | undefined;
}

/** A host that the sandbox was refused, with buttons to allow it for a repository from the next turn on, for those who may. */
export function RefusedHost({ host, port, reason, named }: Refused) {
  const repositories = use(RepositoriesContext);
  const may = useMay("admin");
  const destination = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  return (
    <div className="rounded-md bg-warn-soft px-3 py-2 text-sm text-warn">
      <p className="break-words">
        Refused <code>{destination}</code>: {reasons[reason]}
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
  const allow = useMutation({ mutationFn: () => client.repository.allow(repositoryId, destination) });
  if (allow.isSuccess) return <output className="mt-1 block">Allowed for {name} from its next turn on.</output>;
  return (
    <div className="mt-2 flex flex-wrap items-center gap-3">
      <button type="button" className="button" disabled={allow.isPending} onClick={() => allow.mutate()}>
        Allow for {name}
      </button>
      <ErrorText error={allow.error} />
    </div>
  );
}
