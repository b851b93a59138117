import { AlertDialog, Dialog } from "radix-ui";
import { useState, type ReactNode } from "react";

const overlay = "fixed inset-0 bg-black/50";
const box =
  "fixed top-1/2 left-1/2 max-h-[92dvh] -translate-x-1/2 -translate-y-1/2 overflow-y-auto rounded-lg border border-line bg-surface p-5";

/**
 * A button that opens a dialog.
 * @param children gets a function that closes the dialog; if it moved the focus, the focus stays there, else it returns
 * to the button
 */
export function ButtonDialog({
  button,
  of,
  className = "button",
  disabled = false,
  title,
  children,
}: {
  readonly button: string;
  /** Which of several objects the button is for, as screen readers say it. */
  readonly of?: string;
  readonly className?: string;
  readonly disabled?: boolean;
  readonly title: string;
  readonly children: (close: (then?: () => void) => void) => ReactNode;
}) {
  const [open, setOpen] = useState(false);
  const [next, setNext] = useState<(() => void) | null>(null);
  function close(then?: () => void): void {
    setNext(() => then ?? null);
    setOpen(false);
  }
  // The dialog keeps the focus until this event, and would take it back before.
  function onClosed(event: Event): void {
    if (next === null) return;
    event.preventDefault();
    next();
    setNext(null);
  }
  return (
    <Dialog.Root open={open} onOpenChange={setOpen}>
      <Dialog.Trigger className={className} disabled={disabled}>
        {button}
        {of !== undefined && <span className="sr-only"> {of}</span>}
      </Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Overlay className={overlay} />
        <Dialog.Content
          aria-describedby={undefined}
          className={`${box} w-[min(36rem,94vw)]`}
          onCloseAutoFocus={onClosed}
        >
          <Dialog.Title className="text-lg font-semibold">{title}</Dialog.Title>
          {children(close)}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** Button that closes its dialog. */
export const CloseDialog = () => <Dialog.Close className="button">Cancel</Dialog.Close>;

/** A button for an action that can't be undone: asks for confirmation, and says what would be lost. */
export function ConfirmButton({
  button,
  of,
  disabled,
  question,
  children,
  onConfirm,
}: {
  readonly button: string;
  /** Which of several objects the button is for, as screen readers say it. */
  readonly of?: string;
  readonly disabled: boolean;
  readonly question: string;
  readonly children: ReactNode;
  readonly onConfirm: () => void;
}) {
  return (
    <AlertDialog.Root>
      <AlertDialog.Trigger className="button" disabled={disabled}>
        {button}
        {of !== undefined && <span className="sr-only"> {of}</span>}
      </AlertDialog.Trigger>
      <AlertDialog.Portal>
        <AlertDialog.Overlay className={overlay} />
        <AlertDialog.Content className={`${box} w-[min(28rem,94vw)] space-y-3`}>
          <AlertDialog.Title className="text-lg font-semibold">{question}</AlertDialog.Title>
          <AlertDialog.Description className="text-sm text-muted">{children}</AlertDialog.Description>
          <div className="flex justify-end gap-2 pt-1">
            <AlertDialog.Cancel className="button">Cancel</AlertDialog.Cancel>
            <AlertDialog.Action className="button button-danger" onClick={onConfirm}>
              {button}
            </AlertDialog.Action>
          </div>
        </AlertDialog.Content>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}
