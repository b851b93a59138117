import { useMutation, useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { consentProblems, type ConsentProblem } from "../../domain/people/consent-problem.ts";
import type { Consent } from "../../domain/people/grant.ts";
import type { Scope } from "../../domain/people/key.ts";
import { useTitle } from "../elements/use-title.ts";
import { ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";
import { searchOfPage } from "../elements/search-of-page.ts";

/** What each scope lets a program do, in the order in which they are listed. */
const meanings: Readonly<Record<Scope, string>> = {
  read: "See sessions, their changes and events, automations and repositories",
  write: "Start, steer and cancel sessions, and change automations",
  trigger: "Start automations",
  admin: "Do everything else that an admin may: budgets, secrets, keys, users and settings",
};

/** Says why a program's request can't be shown: the server sends a browser here with a code. */
export function ConsentProblemPage() {
  const given = useSearch({ from: "/authorize", shouldThrow: false });
  const { problem } = searchOfPage(given);
  useTitle("Nothing was allowed");
  const isKnown = Object.hasOwn(consentProblems, problem ?? "");
  return (
    <div className="mx-auto max-w-md py-12">
      <h1 className="text-xl font-semibold">Nothing was allowed</h1>
      <p className="mt-3 text-sm">
        {isKnown ? consentProblems[problem as ConsentProblem] : "A program sent you here without saying what for."}
      </p>
    </div>
  );
}

/** Asks the person who is signed in whether a program may act for them. @param id of the request */
export function ConsentPage({ id }: { id: string }) {
  useTitle("Let a program act for you?");
  const asked = useQuery({
    queryKey: ["oauth request", id],
    queryFn: () => client.oauthRequest.get(id),
    // A decision ends it: what is shown must not be asked for again behind it.
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  });
  if (asked.data !== undefined) return <Question id={id} consent={asked.data} />;
  return (
    <div className="mx-auto max-w-md py-12">
      <h1 className="text-xl font-semibold">Let a program act for you?</h1>
      {asked.error === null ? <p className="mt-3 text-muted">Loading …</p> : <ErrorText error={asked.error} />}
    </div>
  );
}

function Question({ id, consent }: { id: string; consent: Consent }) {
  const { clientName, clientHost, redirectHost, isLocal, resource, scopes } = consent;
  const decide = useMutation({
    mutationFn: (allow: boolean) => client.oauthRequest.decide(id, { allow }),
    onSuccess: ({ redirectUrl }) => location.assign(redirectUrl),
  });
  const isOver = decide.isPending || decide.isSuccess;
  return (
    <div className="mx-auto max-w-md py-12">
      <h1 className="text-xl font-semibold wrap-anywhere">
        Let <bdi>{clientName}</bdi> act for you?
      </h1>
      <p className="mt-3 text-sm">
        {clientHost === null ? (
          "It calls itself so; nobody vouches for the name."
        ) : (
          <>
            It is described by <strong className="wrap-anywhere">{clientHost}</strong>.
          </>
        )}{" "}
        {isLocal ? (
          <>
            The answer goes to a program on this machine (<strong>{redirectHost}</strong>). Go on only if you have just
            started one that asks for this.
          </>
        ) : (
          <>
            The answer goes to <strong className="wrap-anywhere">{redirectHost}</strong>. Go on only if you trust that
            site.
          </>
        )}
      </p>
      <h2 className="mt-5 text-sm font-medium">
        {scopes.length === 0
          ? "You may do nothing of what it asks for."
          : `It could then${resource === "mcp" ? ", by the tools of the MCP server" : ""}:`}
      </h2>
      <ul className="mt-2 list-disc space-y-1 pl-5 text-sm">
        {scopes.map((scope) => (
          <li key={scope}>{meanings[scope]}</li>
        ))}
      </ul>
      <p className="mt-4 text-sm text-muted">You can end this at any time in the settings, under “Programs”.</p>
      <div className="mt-6 flex gap-3">
        <button
          type="button"
          className="button button-primary"
          disabled={isOver || scopes.length === 0}
          onClick={() => decide.mutate(true)}
        >
          Allow
        </button>
        <button type="button" className="button" disabled={isOver} onClick={() => decide.mutate(false)}>
          Refuse
        </button>
      </div>
      <output className="mt-3 block text-sm text-muted empty:hidden">
        {decide.isSuccess ? "Going back to the program …" : ""}
      </output>
      <ErrorText error={decide.error} />
    </div>
  );
}
