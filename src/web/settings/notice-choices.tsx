import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useId, useState, type FormEvent } from "react";
import {
  noticeScopes,
  type NoticeChannel,
  type NoticeKind,
  type NoticeScope,
  type NoticeSettingsAnswer,
} from "../../domain/notices/notice.ts";
import { ErrorText } from "../elements/notice.tsx";
import { Unsaved } from "../elements/unsaved.tsx";
import { client } from "../query.ts";
import { useNoticeTexts } from "../texts/notices.ts";

/** In the order of their columns. */
const channels = ["push", "email"] as const;

/** The user's choices of notices and channels: a row for each kind. */
export function NoticeChoices({ settings, email }: Pick<NoticeSettingsAnswer, "settings" | "email">) {
  const texts = useNoticeTexts();
  const queries = useQueryClient();
  const [chosen, setChosen] = useState<Readonly<Record<string, NoticeScope>>>({});
  const rows = settings.map((row) => ({
    kind: row.kind,
    push: chosen[`push ${row.kind}`] ?? row.push,
    email: chosen[`email ${row.kind}`] ?? row.email,
  }));
  const changes = rows.filter((row, at) => channels.some((channel) => row[channel] !== settings[at]?.[channel]));
  const save = useMutation({
    mutationFn: (_sent: typeof chosen) => client.notices.update({ settings: changes }),
    onSuccess: (saved, sent) => {
      queries.setQueryData(["notices", "settings"], saved);
      // Choices made meanwhile are still to be saved.
      setChosen((now) => Object.fromEntries(Object.entries(now).filter(([name, scope]) => sent[name] !== scope)));
    },
  });
  const choose = (kind: NoticeKind, channel: NoticeChannel, scope: NoticeScope): void => {
    setChosen({ ...chosen, [`${channel} ${kind}`]: scope });
    save.reset();
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!save.isPending) save.mutate(chosen);
  };
  const problem = !email.available ? texts.noMailServer : email.address === null ? texts.noAddress : null;
  return (
    <form onSubmit={submit} className="space-y-3">
      <h3 className="label">{texts.choices}</h3>
      <Table rows={rows} canMail={problem === null} onChoose={choose} />
      <p className="max-w-prose text-xs text-muted">{texts.scopesAbout}</p>
      <p className={`max-w-prose text-sm ${problem === null ? "text-muted" : "text-warn"} wrap-anywhere`}>
        {problem ?? texts.mailTo(email.address ?? "")}
      </p>
      <div className="flex items-center gap-3">
        <button type="submit" className="button button-primary" disabled={save.isPending}>
          {save.isPending ? texts.saving : texts.save}
        </button>
        <output className="text-sm text-good">{save.isSuccess ? texts.saved : ""}</output>
      </div>
      <ErrorText error={save.error} />
      <Unsaved isChanged={changes.length > 0} />
    </form>
  );
}

function Table({
  rows,
  canMail,
  onChoose,
}: {
  rows: NoticeSettingsAnswer["settings"];
  canMail: boolean;
  onChoose: (kind: NoticeKind, channel: NoticeChannel, scope: NoticeScope) => void;
}) {
  const texts = useNoticeTexts();
  const id = useId();
  return (
    <table className="w-full text-sm">
      <thead>
        <tr className="text-xs text-muted">
          <th scope="col" className="py-1 text-start font-medium">
            {texts.kind}
          </th>
          {channels.map((channel) => (
            <th key={channel} id={`${id}-${channel}`} scope="col" className="py-1 ps-2 text-start font-medium">
              {texts.channels[channel]}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ kind, ...scopes }) => (
          <tr key={kind} className="border-t border-line">
            <th id={`${id}-${kind}`} scope="row" className="py-1.5 text-start font-normal">
              {texts.kinds[kind]}
            </th>
            {channels.map((channel) => (
              <td key={channel} className="w-24 py-1.5 ps-2">
                <Choice
                  labelledBy={`${id}-${kind} ${id}-${channel}`}
                  scope={scopes[channel]}
                  isOffered={channel === "push" || canMail}
                  onChoose={(scope) => onChoose(kind, channel, scope)}
                />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Choice({
  labelledBy,
  scope,
  isOffered,
  onChoose,
}: {
  labelledBy: string;
  scope: NoticeScope;
  isOffered: boolean;
  onChoose: (scope: NoticeScope) => void;
}) {
  const texts = useNoticeTexts();
  return (
    <select
      aria-labelledby={labelledBy}
      className="field disabled:opacity-60"
      value={scope}
      disabled={!isOffered}
      onChange={({ target }) => onChoose(noticeScopes.find((known) => known === target.value) ?? scope)}
    >
      {noticeScopes.map((each) => (
        <option key={each} value={each}>
          {texts.scopes[each]}
        </option>
      ))}
    </select>
  );
}
