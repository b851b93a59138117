/** Why a program's request can't even be shown. The code stands in the address of the page, which shows the text. */
export type ConsentProblem = "client" | "redirect";
