import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { FormEvent } from "react";
import type { Repository, RepositoryLimits } from "../../domain/repositories/repository.ts";
import { hasBadInput } from "../elements/bad-input.ts";
import { Field, fieldOf } from "../elements/field.tsx";
import { Unsaved } from "../elements/unsaved.tsx";
import { useEdits } from "../elements/use-edits.ts";
import { useMay } from "../query.ts";
import { useRepositoryTexts } from "../texts/repositories.ts";
import { calls } from "./calls.ts";
import { Loaded, SaveBar, Section, Shown } from "./section.tsx";

/** A repository's name, note, own branch and limit. */
export function General({ repository }: { repository: Repository }) {
  const texts = useRepositoryTexts().general;
  const { id } = repository;
  const limits = useQuery({ queryKey: ["repository", id, "limits"], queryFn: () => calls.limits(id) });
  const may = useMay("write");
  return (
    <Section title={texts.title}>
      <Loaded query={limits}>
        {(found) =>
          may ? (
            <GeneralForm repository={repository} limits={found} />
          ) : (
            <GeneralFacts repository={repository} limits={found} />
          )
        }
      </Loaded>
    </Section>
  );
}

function GeneralFacts({ repository, limits }: { repository: Repository; limits: RepositoryLimits }) {
  const texts = useRepositoryTexts();
  return (
    <>
      <Shown name={texts.general.note} value={repository.description ?? ""} />
      <Shown name={texts.general.branch} value={repository.branch ?? texts.ofForgeDefault} />
      <Shown name={texts.general.limit} value={limits.maxRunningSessions?.toString() ?? texts.general.noLimit} />
    </>
  );
}

const fields = ["name", "description", "branch", "maxRunningSessions"] as const;

function valuesOf(repository: Repository, limits: RepositoryLimits): Record<(typeof fields)[number], string> {
  return {
    name: repository.name,
    description: repository.description ?? "",
    branch: repository.branch ?? "",
    maxRunningSessions: limits.maxRunningSessions?.toString() ?? "",
  };
}

function GeneralForm({ repository, limits }: { repository: Repository; limits: RepositoryLimits }) {
  const { id } = repository;
  const texts = useRepositoryTexts();
  const queries = useQueryClient();
  // The branch decides which code gets setup secrets.
  const isAdmin = useMay("admin");
  const { values, changed, edit, onSaved } = useEdits(valuesOf(repository, limits));
  const save = useMutation({
    mutationFn: async ({ name, description, branch, maxRunningSessions }: typeof values) => {
      const isSent = (field: (typeof fields)[number]): boolean => changed.includes(field);
      const orNull = (text: string): string | null => (text.trim() === "" ? null : text.trim());
      // First what is refused more often: then nothing is half saved.
      const limit = orNull(maxRunningSessions) === null ? null : Number(maxRunningSessions);
      const saved = isSent("maxRunningSessions") ? await calls.setLimits(id, { maxRunningSessions: limit }) : limits;
      queries.setQueryData(["repository", id, "limits"], saved);
      // Only what was changed, so that others' changes since stay.
      const updated = await calls.update(id, {
        ...(isSent("name") && { name: name.trim() }),
        ...(isSent("description") && { description: orNull(description) }),
        ...(isSent("branch") && { branch: orNull(branch) }),
      });
      return { repository: updated, limits: saved };
    },
    onSuccess: (saved, sent) => {
      queries.setQueryData(["repository", id], saved.repository);
      onSaved(sent, valuesOf(saved.repository, saved.limits));
      return queries.invalidateQueries({ queryKey: ["repositories"] });
    },
  });
  const wrong = fieldOf(save.error, fields);
  const errorOf = (name: (typeof fields)[number]): Error | null => (wrong === name ? save.error : null);
  const input = (name: (typeof fields)[number]) => ({
    className: "field",
    autoComplete: "off",
    value: values[name],
    onChange: ({ target }: { target: { value: string } }) => {
      edit(name, target.value);
      save.reset();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    if (!save.isPending && !hasBadInput(event.currentTarget)) save.mutate(values);
  };
  return (
    <form onSubmit={submit} noValidate className="space-y-4">
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label={texts.general.name} error={errorOf("name")}>
          {(attributes) => <input {...attributes} {...input("name")} />}
        </Field>
        <Field label={texts.general.note} hint={texts.general.noteHint} error={errorOf("description")}>
          {(attributes) => <input {...attributes} {...input("description")} />}
        </Field>
        {isAdmin && (
          <>
            <Field label={texts.general.branch} hint={texts.general.branchHint} error={errorOf("branch")}>
              {(attributes) => <input {...attributes} {...input("branch")} autoCapitalize="none" spellCheck={false} />}
            </Field>
            <Field label={texts.general.limit} hint={texts.general.limitHint} error={errorOf("maxRunningSessions")}>
              {(attributes) => <input {...attributes} {...input("maxRunningSessions")} type="number" min="1" />}
            </Field>
          </>
        )}
      </div>
      {!isAdmin && (
        <>
          <Shown name={texts.general.branch} value={repository.branch ?? texts.ofForgeDefault} />
          <Shown name={texts.general.limit} value={limits.maxRunningSessions?.toString() ?? texts.general.noLimit} />
        </>
      )}
      <Unsaved isChanged={changed.length > 0} />
      <SaveBar isPending={save.isPending} isSaved={save.isSuccess} error={wrong === null ? save.error : null} />
    </form>
  );
}
