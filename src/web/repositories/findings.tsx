import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import type { AllowedFinding } from "../../domain/repositories/finding.ts";
import { ButtonDialog, ConfirmButton } from "../elements/dialog.tsx";
import { Fact } from "../elements/fact.tsx";
import { Field, fieldOf } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { useMay } from "../query.ts";
import { useRepositoryTexts } from "../texts/repositories.ts";
import { calls } from "./calls.ts";
import { Loaded, Section } from "./section.tsx";

const parts = ["path", "rule", "fingerprint"] as const;

/** Findings of the secret scan that don't stop a push of a repository's work. */
export function Findings({ id }: { id: string }) {
  const texts = useRepositoryTexts().findings;
  const queryKey = ["repository", id, "findings"];
  const queries = useQueryClient();
  const findings = useQuery({ queryKey, queryFn: () => calls.findings(id) });
  const remove = useMutation({
    mutationFn: async (finding: AllowedFinding) => {
      // The list is replaced as a whole: it is read first, so that others' additions stay.
      const { allowedFindings } = await calls.findings(id);
      const wanted = keyOf(finding);
      return calls.setFindings(
        id,
        allowedFindings.filter((each) => keyOf(each) !== wanted),
      );
    },
    onSuccess: (left) => queries.setQueryData(queryKey, left),
  });
  const may = useMay("admin");
  return (
    <Section
      title={texts.title}
      about={texts.about}
      action={
        may && (
          <ButtonDialog button={texts.add} title={texts.add}>
            {(close) => (
              <FindingForm
                save={async (finding) => {
                  queries.setQueryData(queryKey, await calls.allowFinding(id, finding));
                  close();
                }}
              />
            )}
          </ButtonDialog>
        )
      }
    >
      <ErrorText error={remove.error} />
      <Loaded query={findings}>
        {({ allowedFindings }) =>
          allowedFindings.length === 0 ? (
            <p className="text-sm text-muted">{texts.none}</p>
          ) : (
            <ul aria-label={texts.list} className="divide-y divide-line text-sm">
              {allowedFindings.map((finding) => (
                <li key={keyOf(finding)} className="flex items-center gap-3 py-2">
                  <FindingFacts finding={finding} />
                  {may && (
                    <ConfirmButton
                      button={texts.remove}
                      of={keyOf(finding)}
                      disabled={remove.isPending}
                      question={texts.removeQuestion}
                      onConfirm={() => remove.mutate(finding)}
                    >
                      {texts.removeAbout}
                    </ConfirmButton>
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}

function keyOf(finding: AllowedFinding): string {
  return parts.map((part) => finding[part] ?? "").join(" ");
}

function FindingFacts({ finding }: { finding: AllowedFinding }) {
  const texts = useRepositoryTexts().findings;
  return (
    <dl className="flex min-w-0 flex-1 flex-wrap gap-x-5 gap-y-1">
      {parts.map((part) => {
        const value = finding[part];
        if (value === undefined) return null;
        return (
          <Fact key={part} name={texts[part]}>
            <code className="text-xs">{value}</code>
          </Fact>
        );
      })}
    </dl>
  );
}

function FindingForm({ save }: { save: (finding: AllowedFinding) => Promise<void> }) {
  const texts = useRepositoryTexts();
  const [values, setValues] = useState({ path: "", rule: "", fingerprint: "" });
  const saving = useMutation({
    mutationFn: () =>
      save(
        Object.fromEntries(
          parts.map((part) => [part, values[part].trim()] as const).filter(([, value]) => value !== ""),
        ),
      ),
  });
  const wrong = fieldOf(saving.error, parts);
  const hints = {
    path: texts.findings.pathHint,
    rule: texts.findings.ruleHint,
    fingerprint: texts.findings.fingerprintHint,
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!saving.isPending) saving.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <p className="text-sm text-muted">{texts.findings.allOfThem}</p>
      {parts.map((part) => (
        <Field key={part} label={texts.findings[part]} hint={hints[part]} error={wrong === part ? saving.error : null}>
          {(attributes) => (
            <input
              {...attributes}
              className="field font-mono"
              autoComplete="off"
              autoCapitalize="none"
              spellCheck={false}
              value={values[part]}
              onChange={({ target }) => setValues({ ...values, [part]: target.value })}
            />
          )}
        </Field>
      ))}
      <FormEnd
        error={wrong === null ? saving.error : null}
        isPending={saving.isPending}
        verb={texts.findings.verb}
        pendingVerb={texts.saving}
      />
    </form>
  );
}
