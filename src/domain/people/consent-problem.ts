/** Why a program's request can't even be shown. The code is in the address of the page, which shows the text. */
export type ConsentProblem = "client" | "redirect";
