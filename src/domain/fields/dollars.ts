import { z } from "zod";

/** An amount in US dollars, 0 to 10 million. The database stores it to a millionth. */
export const dollarsSchema = z.number().min(0).max(10_000_000);
