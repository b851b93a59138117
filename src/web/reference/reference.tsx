import { useEffect, useMemo, useState } from "react";
import { operationsOf, type Description, type Operation } from "../../description/operations.ts";
import { exampleLanguages, type ExampleLanguage } from "../../description/snippets.ts";
import icon from "../icon.svg";
import { OperationSection } from "./operation.tsx";

/** Which language was chosen last, in this browser. */
const languageKey = "offstage.reference.language";

/** The API's reference, made from the description that the same server gives to programs. */
export function Reference() {
  const [loaded, setLoaded] = useState<Description | Error | null>(null);
  useEffect(() => {
    const leaving = new AbortController();
    fetch("/openapi.json", { signal: leaving.signal })
      .then((response) => {
        if (!response.ok) throw new Error(`the server answered ${response.status}`);
        return response.json() as Promise<Description>;
      })
      .then(setLoaded, (error: Error) => leaving.signal.aborted || setLoaded(error));
    return () => leaving.abort();
  }, []);
  return (
    <div className="flex min-h-dvh flex-col">
      <a
        href="#main"
        className="sr-only focus:not-sr-only focus:absolute focus:z-10 focus:m-2 focus:rounded focus:bg-surface focus:p-2"
      >
        Skip to the content
      </a>
      <header className="border-b border-line bg-surface">
        <div className="mx-auto flex max-w-7xl flex-wrap items-center gap-x-4 gap-y-2 px-4 py-2.5">
          <a href="/" className="mr-auto flex items-center gap-2 font-semibold">
            <img src={icon} alt="" className="size-6" />
            Offstage
          </a>
          <a href="/openapi.json" className="py-1 text-sm text-muted hover:text-ink">
            openapi.json
          </a>
        </div>
      </header>
      {loaded instanceof Error ? (
        <main id="main" className="mx-auto w-full max-w-7xl px-4 py-10">
          <h1 className="text-xl font-semibold">API reference</h1>
          <p role="alert" className="mt-3 text-bad">
            The description can’t be loaded: {loaded.message}. Load the page again.
          </p>
        </main>
      ) : loaded === null ? (
        <main id="main" className="mx-auto w-full max-w-7xl px-4 py-10">
          <h1 className="text-xl font-semibold">API reference</h1>
          <p className="mt-3 text-muted">Loading …</p>
        </main>
      ) : (
        <Loaded description={loaded} />
      )}
    </div>
  );
}

function Loaded({ description }: { description: Description }) {
  const all = useMemo(() => operationsOf(description), [description]);
  const [search, setSearch] = useState("");
  const [language, setLanguage] = useState<ExampleLanguage>(storedLanguage);
  const words = search.toLowerCase().split(/\s+/u);
  const shown = all.filter((operation) => words.every((word) => textOf(operation).includes(word)));
  const tags = Map.groupBy(shown, ({ tag }) => tag);
  // The page's parts are made after the browser looked for the one in its address.
  useEffect(() => {
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  }, []);
  return (
    <div className="mx-auto flex w-full max-w-7xl flex-1 flex-col gap-x-8 px-4 lg:flex-row">
      <nav
        aria-label="Operations"
        className="shrink-0 py-4 lg:sticky lg:top-0 lg:h-dvh lg:w-72 lg:overflow-y-auto lg:py-6"
        // A region that scrolls is reached by the keyboard.
        tabIndex={-1}
      >
        <label className="block text-sm font-medium">
          Search
          <input
            type="search"
            className="field mt-1"
            value={search}
            onChange={(event) => setSearch(event.target.value)}
            placeholder="session create"
          />
        </label>
        <output className="mt-2 block text-sm text-muted">
          {shown.length === all.length ? `${all.length} operations` : `${shown.length} of ${all.length} operations`}
        </output>
        <ul className="mt-3 hidden space-y-4 text-sm lg:block">
          {[...tags].map(([tag, operations]) => (
            <li key={tag}>
              <span className="font-medium">{tag}</span>
              <ul className="mt-1 border-s border-line">
                {operations.map((operation) => (
                  <li key={operation.id}>
                    <a href={`#${operation.id}`} className="block py-0.5 ps-3 text-muted hover:text-ink">
                      {operation.summary}
                    </a>
                  </li>
                ))}
              </ul>
            </li>
          ))}
        </ul>
      </nav>
      <main id="main" tabIndex={-1} className="min-w-0 flex-1 pb-16 outline-none lg:py-6">
        <h1 className="text-2xl font-semibold">API reference</h1>
        <p className="mt-1 text-sm text-muted">
          {description.info.title} {description.info.version}
        </p>
        <Introduction text={description.info.description ?? ""} />
        <LanguageChoice
          language={language}
          onChoose={(chosen) => {
            setLanguage(chosen);
            localStorage.setItem(languageKey, chosen);
          }}
        />
        {[...tags].map(([tag, operations]) => (
          <section key={tag} aria-labelledby={`tag-${tag}`} className="mt-10">
            <h2 id={`tag-${tag}`} className="text-xl font-semibold">
              {tag}
            </h2>
            {operations.map((operation) => (
              <OperationSection key={operation.id} operation={operation} language={language} components={description} />
            ))}
          </section>
        ))}
        {shown.length === 0 && <p className="mt-10 text-muted">No operation has these words.</p>}
      </main>
    </div>
  );
}

/** The paragraphs of the description, in which only code is marked. */
function Introduction({ text }: { text: string }) {
  return (
    <div className="mt-4 space-y-3 text-[0.94rem]">
      {text.split("\n\n").map((paragraph) => (
        <p key={paragraph}>
          {paragraph.split("`").map((part, index) =>
            index % 2 === 1 ? (
              // Parts have no other name than their place.
              // oxlint-disable-next-line react/no-array-index-key
              <code key={index} className="rounded bg-sunken px-1 py-0.5 font-mono text-[0.86em] wrap-anywhere">
                {part}
              </code>
            ) : (
              part
            ),
          )}
        </p>
      ))}
      <p>
        Examples read <code className="font-mono text-[0.86em]">OFFSTAGE_SERVER</code> and{" "}
        <code className="font-mono text-[0.86em]">OFFSTAGE_API_KEY</code>; ids in them are made up.
      </p>
    </div>
  );
}

function LanguageChoice({
  language,
  onChoose,
}: {
  language: ExampleLanguage;
  onChoose: (language: ExampleLanguage) => void;
}) {
  return (
    <fieldset className="mt-6">
      <legend className="text-sm font-medium">Examples in</legend>
      <div className="mt-1 flex flex-wrap gap-2">
        {exampleLanguages.map((each) => (
          <label key={each} className="button has-checked:border-accent has-checked:bg-accent-soft">
            <input
              type="radio"
              name="language"
              className="accent-(--accent)"
              checked={each === language}
              onChange={() => onChoose(each)}
            />
            {each}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function storedLanguage(): ExampleLanguage {
  const stored = localStorage.getItem(languageKey);
  return exampleLanguages.find((language) => language === stored) ?? "curl";
}

function textOf({ id, path, summary, tag }: Operation): string {
  return `${id} ${path} ${summary} ${tag}`.toLowerCase();
}
