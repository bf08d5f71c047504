/** `--reason`, of every command whose effect the console asks about. */
import { optional, text } from '../../process/settings/settings.ts';

export const REASON = { reason: optional(text('--reason <text>', 'for the audit trail')) };
