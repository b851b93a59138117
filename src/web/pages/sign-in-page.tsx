import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useId, useRef, useState } from "react";
import { pagePath, type SignInProblem } from "../../domain/people/sign-in.ts";
import { useTitle } from "../elements/use-title.ts";
import { ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";
import { searchOfPage } from "../elements/search-of-page.ts";
import { useSignInTexts } from "../texts/sign-in.ts";

/**
 * Signs in by a one-time link, by a key or by an identity provider. The link's token is in the fragment, which no
 * server logs. A link that was mailed waits for a click: programs that look into mails run the pages of links, and it works once.
 */
export function SignInPage() {
  const texts = useSignInTexts();
  const given = useSearch({ from: "/sign-in", shouldThrow: false });
  const { next, problem, invited } = searchOfPage(given);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const [key, setKey] = useState("");
  const [isAsking, setAsking] = useState(invited === true && location.hash.length > 1);
  const fieldId = useId();
  const signIn = useMutation({
    mutationFn: (credential: { token: string } | { key: string }) => client.login.create(credential),
    onSuccess: async () => {
      queries.clear();
      await navigate({ href: next !== undefined && pagePath.test(next) ? next : "/" });
    },
  });
  useTitle(texts.title);
  const { mutate } = signIn;
  const redeemed = useRef(false);
  useEffect(() => {
    const token = location.hash.slice(1);
    if (token === "" || redeemed.current || isAsking) return;
    // A link works once: neither a second effect nor a reload may try it again.
    redeemed.current = true;
    history.replaceState(history.state, "", location.pathname + location.search);
    mutate({ token });
  }, [mutate, isAsking]);

  if (isAsking) return <Invited next={next} onSignIn={() => setAsking(false)} />;
  return (
    <div className="mx-auto max-w-sm py-12">
      <h1 className="text-xl font-semibold">{texts.title}</h1>
      <p className="mt-1 text-sm text-muted">
        {texts.about.before} <code>offstage login-link</code> {texts.about.after}
      </p>
      <Methods next={next} />
      <p role="alert" className="mt-4 text-sm text-bad empty:hidden">
        {sentenceOf(problem, texts.problems)}
      </p>
      <form
        className="mt-6 space-y-3"
        onSubmit={(event) => {
          event.preventDefault();
          signIn.mutate({ key: key.trim() });
        }}
      >
        <label htmlFor={fieldId} className="text-sm font-medium">
          {texts.key}
        </label>
        <input
          id={fieldId}
          type="password"
          autoComplete="current-password"
          className="field"
          value={key}
          onChange={(event) => setKey(event.target.value)}
        />
        <button
          type="submit"
          className="button button-primary w-full justify-center"
          disabled={signIn.isPending || key.trim() === ""}
        >
          {signIn.isPending ? texts.signingIn : texts.title}
        </button>
        <ErrorText error={signIn.error} />
      </form>
    </div>
  );
}

/** Before a mailed link is used. */
function Invited({ next, onSignIn }: { next: string | undefined; onSignIn: () => void }) {
  const { invited: texts, title } = useSignInTexts();
  return (
    <div className="mx-auto max-w-sm py-12">
      <h1 className="text-xl font-semibold">{texts.title}</h1>
      <p className="mt-1 text-sm text-muted">{texts.about}</p>
      <button type="button" className="button button-primary mt-6 w-full justify-center" onClick={onSignIn}>
        {title}
      </button>
      <Methods next={next} />
    </div>
  );
}

/** Only known codes: the address is untrusted. */
function sentenceOf(problem: string | undefined, sentences: Readonly<Record<SignInProblem, string>>): string {
  return Object.hasOwn(sentences, problem ?? "") ? sentences[problem as SignInProblem] : "";
}

/** A button for each configured identity provider. */
function Methods({ next }: { next: string | undefined }) {
  const { signInWith } = useSignInTexts();
  const methods = useQuery({ queryKey: ["sign-in methods"], queryFn: () => client.login.methods(), staleTime: 60_000 });
  const query = next === undefined ? "" : `?next=${encodeURIComponent(next)}`;
  return (
    <div className="mt-6 space-y-2 empty:hidden">
      {methods.data?.methods.map(({ id, name }) => (
        <a key={id} href={`/login/${id}${query}`} className="button w-full justify-center">
          {signInWith(name)}
        </a>
      ))}
    </div>
  );
}
