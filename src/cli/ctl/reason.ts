/** `--reason`, of every command whose effect the console asks about. */
import { optional, text } from '../../program/settings.ts';

export const REASON = { reason: optional(text('--reason <text>', 'for the audit trail')) };
