/** `--reason`, for every command for which the console asks for a reason. */
import { optional, text } from '../../process/settings/settings.ts';

export const REASON = { reason: optional(text('--reason <text>', 'for the audit trail')) };
