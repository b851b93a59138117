import { z } from "zod";

/** US dollars, to a millionth. */
export const dollarsSchema = z.number().min(0).max(10_000_000);
