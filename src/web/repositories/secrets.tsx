import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useId, useState, type FormEvent } from "react";
import { secretPhases, type Secret, type SecretPhase } from "../../domain/environments/secret.ts";
import { ButtonDialog, ConfirmButton } from "../elements/dialog.tsx";
import { Field, fieldOf } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { Ago } from "../elements/time.tsx";
import { client } from "../query.ts";
import { useRepositoryTexts } from "../texts/repositories.ts";
import { calls } from "./calls.ts";
import { Section } from "./section.tsx";

/** The secrets of one repository, for admins: named, set and deleted, never read. */
export function RepositorySecrets({ id }: { id: string }) {
  const texts = useRepositoryTexts().secrets;
  const queries = useQueryClient();
  // Also those of the settings' page.
  const reload = () => queries.invalidateQueries({ queryKey: ["secrets"] });
  return (
    <Section
      title={texts.title}
      about={
        <>
          {texts.about}{" "}
          <Link to="/settings" className="text-accent underline">
            {texts.ofOrganization}
          </Link>
          .
        </>
      }
      action={
        <ButtonDialog button={texts.add} title={texts.add}>
          {(close) => (
            <SecretForm
              save={async ({ name, value, phases }) => {
                await client.secret.create({ name, value, phases, repositoryId: id });
                close();
                await reload();
              }}
            />
          )}
        </ButtonDialog>
      }
    >
      <PagedList
        label={texts.list}
        queryKey={["secrets", "of repository", id]}
        readPage={(cursor) => calls.secrets(id, cursor)}
        itemsOf={(page) => page.secrets}
        empty={texts.none}
        className="divide-y divide-line"
      >
        {(secret) => <Row key={secret.id} secret={secret} reload={reload} />}
      </PagedList>
    </Section>
  );
}

function Row({ secret: { id, name, phases, updatedAt }, reload }: { secret: Secret; reload: () => Promise<void> }) {
  const texts = useRepositoryTexts().secrets;
  const remove = useMutation({ mutationFn: () => client.secret.delete(id), onSuccess: reload });
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-2 py-2 text-sm">
      <div className="min-w-0 flex-1 basis-48">
        <code className="font-medium break-all">{name}</code>
        <p className="text-muted">
          {phases.map((phase) => texts.phases[phase]).join(` ${texts.and} `)} · {texts.set} <Ago at={updatedAt} />
        </p>
      </div>
      <span className="flex gap-2">
        <ButtonDialog button={texts.change} of={name} title={texts.changeOf(name)}>
          {(close) => (
            <SecretForm
              known={{ name, phases }}
              save={async ({ value, phases: chosen }) => {
                await calls.updateSecret(id, { phases: chosen, ...(value !== "" && { value }) });
                close();
                await reload();
              }}
            />
          )}
        </ButtonDialog>
        <ConfirmButton
          button={texts.remove}
          of={name}
          disabled={remove.isPending}
          question={texts.removeOf(name)}
          onConfirm={() => remove.mutate()}
        >
          {texts.removeAbout}
        </ConfirmButton>
      </span>
      <ErrorText error={remove.error} />
    </li>
  );
}

interface Values {
  readonly name: string;
  readonly value: string;
  readonly phases: SecretPhase[];
}

function SecretForm({
  known,
  save,
}: {
  /** Omitted: a new one. */
  known?: Pick<Secret, "name" | "phases">;
  save: (values: Values) => Promise<void>;
}) {
  const texts = useRepositoryTexts();
  const [values, setValues] = useState<Values>({
    name: known?.name ?? "",
    value: "",
    phases: known?.phases ?? ["setup"],
  });
  // Its variables hold the value: the cache of mutations must not keep it.
  const saving = useMutation({ mutationFn: () => save(values), gcTime: 0 });
  const wrong = fieldOf(saving.error, ["name", "value", "phases"]);
  const about = useId();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!saving.isPending) saving.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      {known === undefined && (
        <Field label={texts.secrets.name} hint={texts.secrets.nameHint} error={wrong === "name" ? saving.error : null}>
          {(attributes) => (
            <input
              {...attributes}
              className="field font-mono"
              autoComplete="off"
              autoCapitalize="none"
              spellCheck={false}
              value={values.name}
              onChange={({ target }) => setValues({ ...values, name: target.value.trim() })}
            />
          )}
        </Field>
      )}
      <Field
        label={known === undefined ? texts.secrets.value : texts.secrets.newValue}
        {...(known !== undefined && { hint: texts.secrets.newValueHint })}
        error={wrong === "value" ? saving.error : null}
      >
        {(attributes) => (
          // Of several lines, as private keys are. Its characters are shown as dots by its style.
          <textarea
            {...attributes}
            rows={2}
            className="field max-h-60 [-webkit-text-security:disc] field-sizing-content font-mono"
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            value={values.value}
            onChange={({ target }) => setValues({ ...values, value: target.value })}
          />
        )}
      </Field>
      <fieldset aria-describedby={about} className="space-y-1 text-sm">
        <legend className="font-medium">{texts.secrets.seenBy}</legend>
        <div className="flex gap-4">
          {secretPhases.map((phase) => (
            <label key={phase} className="flex min-h-6 items-center gap-1.5">
              <input
                type="checkbox"
                checked={values.phases.includes(phase)}
                onChange={({ target }) =>
                  setValues({
                    ...values,
                    phases: secretPhases.filter((each) =>
                      each === phase ? target.checked : values.phases.includes(each),
                    ),
                  })
                }
              />
              {texts.secrets.phases[phase]}
            </label>
          ))}
        </div>
        <div id={about}>
          {wrong === "phases" ? (
            <ErrorText error={saving.error} />
          ) : (
            <p className="text-xs text-muted">{texts.secrets.seenByHint}</p>
          )}
        </div>
      </fieldset>
      <FormEnd
        error={wrong === null ? saving.error : null}
        isPending={saving.isPending}
        verb={texts.save}
        pendingVerb={texts.saving}
      />
    </form>
  );
}
