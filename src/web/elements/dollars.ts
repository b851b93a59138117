const dollars = new Intl.NumberFormat("en", { style: "currency", currency: "USD" });
const small = new Intl.NumberFormat("en", { style: "currency", currency: "USD", maximumSignificantDigits: 2 });

/** `$1,234.50`; of less than a cent, its first figures. */
export function formatDollars(amount: number): string {
  return amount > 0 && amount < 0.01 ? small.format(amount) : dollars.format(amount);
}
