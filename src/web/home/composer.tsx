import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useId, type RefObject } from "react";
import { fieldOf } from "../elements/field.tsx";
import { Icon } from "../elements/icon.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";
import { useHomeTexts } from "../texts/home.ts";
import { useDraft, type Draft } from "./draft.ts";
import { AgentPicker, BranchPicker } from "./pickers.tsx";
import { PromptField } from "./prompt-field.tsx";
import { RepositoryPicker } from "./repository-picker.tsx";

/** Starts a session from a sentence. What was written stays in this browser until then. */
export function Composer({ field }: { field: RefObject<HTMLTextAreaElement | null> }) {
  const texts = useHomeTexts().composer;
  const [draft, change] = useDraft();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const errorId = useId();
  const create = useMutation({
    mutationFn: (queueRightAway: boolean) => client.session.create(requestOf(draft, queueRightAway)),
    onSuccess: async ({ id }) => {
      // Where and by whom is most often the same next time.
      change({ prompt: "", budget: "" });
      void queries.invalidateQueries({ queryKey: ["sessions"] });
      void queries.invalidateQueries({ queryKey: ["repositories"] });
      await navigate({ to: "/sessions/$id", params: { id } });
    },
  });
  const isOfPrompt = fieldOf(create.error, ["prompt"]) !== null;
  const submit = (queueRightAway = true): void => {
    if (draft.prompt.trim() !== "" && !create.isPending) create.mutate(queueRightAway);
  };
  return (
    <form
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
      <div id={errorId} className="px-3 pb-2 empty:hidden">
        <ErrorText error={create.error} />
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

function requestOf({ prompt, repository, branch, agent, budget }: Draft, queueRightAway: boolean) {
  const dollars = Number(budget.trim().replace(",", "."));
  return {
    prompt: prompt.trim(),
    ...(repository !== null && repository.id !== null && { codeRepoIds: [repository.id] }),
    ...(repository !== null && repository.id === null && { repositories: [repository.url] }),
    ...(repository !== null && branch !== null && { targetBranch: branch }),
    ...(agent !== null && { agent }),
    ...(budget.trim() !== "" && { budgetUsd: dollars }),
    ...(!queueRightAway && { queueRightAway }),
  };
}
