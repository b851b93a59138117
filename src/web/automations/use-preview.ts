import { keepPreviousData, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Preview } from "../../domain/automations/preview.ts";
import { client } from "../query.ts";

/** The request to the API. */
export type PreviewQuestion = Parameters<typeof client.automation.previewDraft>[0];

/** So long nothing must have been written before a preview is asked for, in ms. */
const pauseMs = 400;

/**
 * A preview of an event, requested after a pause in typing. The answer to the last request is shown, whichever comes
 * last; until then, the one before.
 * @param question null: there is nothing to request yet
 */
export function usePreview(question: PreviewQuestion | null): UseQueryResult<Preview> {
  const asked = usePaused(question === null ? null : JSON.stringify(question));
  return useQuery({
    queryKey: ["preview", asked],
    queryFn: () => client.automation.previewDraft(JSON.parse(asked ?? "") as PreviewQuestion),
    enabled: asked !== null,
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    gcTime: 10_000,
    retry: false,
  });
}

/** A value as it was when it last stood still. The first counts at once. */
function usePaused(value: string | null): string | null {
  const [paused, setPaused] = useState(value);
  if (paused === null && value !== null) setPaused(value);
  useEffect(() => {
    const timer = setTimeout(() => setPaused(value), pauseMs);
    return () => clearTimeout(timer);
  }, [value]);
  return paused;
}
