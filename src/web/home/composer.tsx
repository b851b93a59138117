import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useId, useRef, useState, type RefObject } from "react";
import { hasBadInput } from "../elements/bad-input.ts";
import { fieldOf } from "../elements/field.tsx";
import { Icon } from "../elements/icon.tsx";
import { linesOf } from "../elements/lines.ts";
import { ErrorText, Loading } from "../elements/notice.tsx";
import { pullRequestErrors, settingsOfValues } from "../elements/sessions/pull-request-values.ts";
import { client } from "../query.ts";
import { useHomeTexts } from "../texts/home.ts";
import { countMore, useDraft, withoutSent, type Draft } from "./draft.ts";
import { AgentPicker, BranchPicker } from "./pickers.tsx";
import { PromptField } from "./prompt-field.tsx";
import { RepositoryPicker } from "./repository-picker.tsx";

const MoreOptions = lazy(() =>
  import("./more-options.tsx").then(({ MoreOptions: component }) => ({ default: component })),
);

const mutationKey = ["create session"];

/** Starts a session from a sentence. What was written stays in this browser until then. */
export function Composer({ field }: { field: RefObject<HTMLTextAreaElement | null> }) {
  const texts = useHomeTexts().composer;
  const [draft, change] = useDraft();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const errorId = useId();
  const moreId = useId();
  const form = useRef<HTMLFormElement>(null);
  const [isMoreShown, setMoreShown] = useState(false);
  const create = useMutation({
    mutationKey,
    mutationFn: ({ sent, queueRightAway }: { readonly sent: Draft; readonly queueRightAway: boolean }) =>
      client.session.create(requestOf(sent, queueRightAway)),
    onSuccess: (_, { sent }) => {
      change((now) => withoutSent(now, sent));
      void queries.invalidateQueries({ queryKey: ["sessions"] });
      void queries.invalidateQueries({ queryKey: ["repositories"] });
    },
    onError: (error) => {
      if (isOfMore(error, draft)) setMoreShown(true);
    },
  });
  const ofMore = isOfMore(create.error, draft) ? create.error : null;
  const isOfPrompt = fieldOf(create.error, ["prompt"]) !== null;
  const submit = (queueRightAway = true): void => {
    // Not what was drawn last: keys that are pressed at once come before the next picture.
    if (draft.prompt.trim() === "" || queries.isMutating({ mutationKey }) > 0 || form.current === null) return;
    if (hasBadInput(form.current)) return;
    create.mutate(
      { sent: draft, queueRightAway },
      // Not called if the page was left meanwhile, so that the user is not brought back.
      { onSuccess: ({ id }) => void navigate({ to: "/sessions/$id", params: { id } }) },
    );
  };
  return (
    <form
      ref={form}
      aria-label={texts.form}
      className="card relative focus-within:border-accent"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <PromptField
        field={field}
        draft={draft}
        onPrompt={(prompt) => change({ prompt })}
        onSubmit={submit}
        errorId={isOfPrompt ? errorId : undefined}
      />
      <div className="flex flex-wrap items-center gap-1 px-1.5 pb-1.5">
        <RepositoryPicker
          repository={draft.repository}
          onChange={(repository) => change({ repository, branch: null })}
        />
        {draft.repository !== null && (
          <BranchPicker repository={draft.repository} branch={draft.branch} onChange={(branch) => change({ branch })} />
        )}
        <AgentPicker agent={draft.agent} onChange={(agent) => change({ agent })} />
        <Budget value={draft.budget} onChange={(budget) => change({ budget })} />
        <button
          type="button"
          className="button button-quiet"
          aria-expanded={isMoreShown}
          aria-controls={moreId}
          onClick={() => setMoreShown(!isMoreShown)}
        >
          {texts.more(countMore(draft.more))}
          <Icon name="chevron" className={`size-3 ${isMoreShown ? "-rotate-90" : "rotate-90"}`} />
        </button>
        <span className="ms-auto" />
        <button
          type="button"
          className="button button-quiet"
          disabled={create.isPending || draft.prompt.trim() === ""}
          onClick={() => submit(false)}
        >
          {texts.draft}
        </button>
        <button
          type="submit"
          className="button button-primary"
          title={texts.keys}
          disabled={create.isPending || draft.prompt.trim() === ""}
        >
          <Icon name="send" />
          {create.isPending ? texts.starting : texts.start}
        </button>
      </div>
      <div id={moreId}>
        {isMoreShown && (
          <Suspense
            fallback={
              <div className="px-3">
                <Loading />
              </div>
            }
          >
            <MoreOptions options={draft.more} error={ofMore} onChange={(more) => change({ more })} />
          </Suspense>
        )}
      </div>
      <div id={errorId} className="px-3 pb-2 empty:hidden">
        <ErrorText error={ofMore === null ? create.error : null} />
      </div>
    </form>
  );
}

function Budget({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const texts = useHomeTexts().composer;
  const id = useId();
  return (
    <span className="button button-quiet cursor-text focus-within:text-ink">
      <Icon name="money" />
      <label htmlFor={id} className="sr-only">
        {texts.budget}
      </label>
      <input
        id={id}
        inputMode="decimal"
        pattern="\d+(?:[.,]\d+)?"
        placeholder={texts.noBudget}
        className="w-16 bg-transparent text-sm outline-none placeholder:text-muted"
        value={value}
        onChange={({ target }) => onChange(target.value)}
      />
    </span>
  );
}

/** Names of the API's fields that are written among what else can be said. */
const moreFields = ["branchName", "labels", "repositories", "pullRequestsTogether", ...pullRequestErrors] as const;

function isOfMore(error: Error | null, { repository }: Draft): boolean {
  const wrong = fieldOf(error, moreFields);
  // The first of several repositories is the one that was picked.
  const isOfPicked = repository !== null && /^repositories\.0\b/u.test(error?.message ?? "");
  return wrong !== null && !(wrong === "repositories" && isOfPicked);
}

function requestOf({ prompt, repository, branch, agent, budget, more }: Draft, queueRightAway: boolean) {
  const dollars = Number(budget.trim().replace(",", "."));
  const further = linesOf(more.repositories);
  const pullRequest = settingsOfValues(more.pullRequest);
  const isOneById = repository !== null && repository.id !== null && further.length === 0;
  const urls = [...(repository === null || isOneById ? [] : [repository.url]), ...further];
  return {
    prompt: prompt.trim(),
    ...(isOneById && { codeRepoIds: [repository.id] }),
    ...(urls.length > 0 && { repositories: urls }),
    ...(further.length > 0 && more.together && { pullRequestsTogether: true }),
    ...(repository !== null && branch !== null && { targetBranch: branch }),
    ...(more.branchName.trim() !== "" && { branchName: more.branchName.trim() }),
    ...(more.labels.length > 0 && { labels: [...more.labels] }),
    ...(pullRequest !== null && { pullRequest }),
    ...(agent !== null && { agent }),
    ...(budget.trim() !== "" && { budgetUsd: dollars }),
    ...(!queueRightAway && { queueRightAway }),
  };
}
