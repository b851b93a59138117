import { useMutation, useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import type { ConsentProblem } from "../../domain/people/consent-problem.ts";
import type { Consent } from "../../domain/people/grant.ts";
import { useTitle } from "../elements/use-title.ts";
import { ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";
import { searchOfPage } from "../elements/search-of-page.ts";
import { useConsentTexts } from "../texts/consent.ts";

/** Says why a program's request can't be shown: the server sends a browser here with a code. */
export function ConsentProblemPage() {
  const given = useSearch({ from: "/authorize", shouldThrow: false });
  const { problem } = searchOfPage(given);
  const texts = useConsentTexts().problem;
  useTitle(texts.title);
  const sentences: Readonly<Record<ConsentProblem, string>> = texts.sentences;
  const isKnown = Object.hasOwn(sentences, problem ?? "");
  return (
    <div className="mx-auto max-w-md py-12">
      <h1 className="text-xl font-semibold">{texts.title}</h1>
      <p className="mt-3 text-sm">{isKnown ? sentences[problem as ConsentProblem] : texts.none}</p>
    </div>
  );
}

/** Asks the person who is signed in whether a program may act for them. @param id of the request */
export function ConsentPage({ id }: { id: string }) {
  const texts = useConsentTexts();
  useTitle(texts.title);
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
      <h1 className="text-xl font-semibold">{texts.title}</h1>
      {asked.error === null ? <p className="mt-3 text-muted">{texts.loading}</p> : <ErrorText error={asked.error} />}
    </div>
  );
}

function Question({ id, consent }: { id: string; consent: Consent }) {
  const texts = useConsentTexts();
  const { clientName, clientHost, redirectHost, isLocal, resource, scopes } = consent;
  const decide = useMutation({
    mutationFn: (allow: boolean) => client.oauthRequest.decide(id, { allow }),
    onSuccess: ({ redirectUrl }) => location.assign(redirectUrl),
  });
  const isOver = decide.isPending || decide.isSuccess;
  return (
    <div className="mx-auto max-w-md py-12">
      <h1 className="text-xl font-semibold wrap-anywhere">
        {texts.question.before} <bdi>{clientName}</bdi> {texts.question.after}
      </h1>
      <p className="mt-3 text-sm">
        {clientHost === null ? (
          texts.unknown
        ) : (
          <>
            {texts.describedBy} <strong className="wrap-anywhere">{clientHost}</strong>.
          </>
        )}{" "}
        {isLocal ? (
          <>
            {texts.toProgram} (<strong>{redirectHost}</strong>). {texts.ifStarted}
          </>
        ) : (
          <>
            {texts.toSite} <strong className="wrap-anywhere">{redirectHost}</strong>. {texts.ifTrusted}
          </>
        )}
      </p>
      <h2 className="mt-5 text-sm font-medium">
        {scopes.length === 0 ? texts.nothing : resource === "mcp" ? texts.couldByTools : texts.could}
      </h2>
      <ul className="mt-2 list-disc space-y-1 pl-5 text-sm">
        {scopes.map((scope) => (
          <li key={scope}>{texts.scopes[scope]}</li>
        ))}
      </ul>
      <p className="mt-4 text-sm text-muted">{texts.end}</p>
      <div className="mt-6 flex gap-3">
        <button
          type="button"
          className="button button-primary"
          disabled={isOver || scopes.length === 0}
          onClick={() => decide.mutate(true)}
        >
          {texts.allow}
        </button>
        <button type="button" className="button" disabled={isOver} onClick={() => decide.mutate(false)}>
          {texts.refuse}
        </button>
      </div>
      <output className="mt-3 block text-sm text-muted empty:hidden">{decide.isSuccess ? texts.goingBack : ""}</output>
      <ErrorText error={decide.error} />
    </div>
  );
}
