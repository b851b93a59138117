import { useMutation, useQuery } from "@tanstack/react-query";
import type { NoticeSettingsAnswer } from "../../domain/notices/notice.ts";
import { ErrorText, Loading } from "../elements/notice.tsx";
import { client, useMe } from "../query.ts";
import { useElementTexts } from "../texts/elements.ts";
import { useNoticeTexts } from "../texts/notices.ts";
import { NoticeBrowsers } from "./notice-browsers.tsx";
import { NoticeChoices } from "./notice-choices.tsx";
import { Section } from "./section.tsx";

/** The notices that the user gets while they are elsewhere, and their browsers. */
export function Notices() {
  const texts = useNoticeTexts();
  const { tryAgain } = useElementTexts();
  const me = useMe();
  // A key without an owner has no person who could get notices.
  const isSomebody = me.data !== undefined && me.data.userId !== null;
  const settings = useQuery({
    queryKey: ["notices", "settings"],
    queryFn: () => client.notices.settings(),
    enabled: isSomebody,
  });
  return (
    <Section id="notices" title={texts.title}>
      <p className="max-w-prose text-sm text-muted">{texts.about}</p>
      <ErrorText error={me.error ?? settings.error} />
      {me.data?.userId === null && <p className="card px-4 py-12 text-center text-muted">{texts.nobody}</p>}
      {isSomebody && settings.isPending && <Loading lines={8} />}
      {settings.isLoadingError && (
        <button type="button" className="button" onClick={() => void settings.refetch()}>
          {tryAgain}
        </button>
      )}
      {settings.data !== undefined && <Parts settings={settings.data} />}
    </Section>
  );
}

function Parts({ settings }: { settings: NoticeSettingsAnswer }) {
  return (
    <>
      <NoticeChoices {...settings} />
      <NoticeBrowsers publicKey={settings.push.publicKey} />
      <TestNotice />
    </>
  );
}

function TestNotice() {
  const texts = useNoticeTexts();
  const test = useMutation({ mutationFn: () => client.notices.test() });
  return (
    <div className="flex flex-wrap items-center gap-3 border-t border-line pt-4">
      <button type="button" className="button" disabled={test.isPending} onClick={() => test.mutate()}>
        {test.isPending ? texts.testing : texts.test}
      </button>
      <output className="text-sm text-good">{test.isSuccess ? texts.tested(test.data.deliveries) : ""}</output>
      <ErrorText error={test.error} />
    </div>
  );
}
