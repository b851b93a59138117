import { useEffect } from "react";

/** Sets the document's title, which the browser's tab and history show. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Offstage`;
  }, [title]);
}
