import { Field } from "../elements/field.tsx";

/** A field for the address of a server. */
export function AddressField({
  label,
  hint,
  error,
  placeholder,
  value,
  onChange,
}: {
  readonly label: string;
  readonly hint: string;
  readonly error: Error | null;
  readonly placeholder?: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(attributes) => (
        <input
          {...attributes}
          inputMode="url"
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          className="field"
          placeholder={placeholder}
          value={value}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  );
}
