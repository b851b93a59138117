/** Why a program's request can't even be shown. The code stands in the address of the page, which shows the text. */
export const consentProblems = {
  client:
    "The program that sent you here is not known to this server, or its description can't be read. Have it register again, or ask who makes it.",
  redirect:
    "The program wants you sent to an address that it did not register. Nothing was allowed. Have it register again, or ask who makes it.",
} as const;

/** See `consentProblems`. */
export type ConsentProblem = keyof typeof consentProblems;
