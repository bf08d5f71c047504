/** All rules, in the order of docs/gateway-lint.md. */
import type { Rule } from './gateway.ts';
import { ANSWER_RULES } from './rules/answers.ts';
import { CHAIN_RULES } from './rules/chain.ts';
import { CONNECTION_RULES } from './rules/connection.ts';
import { CONTENT_RULES } from './rules/contents.ts';
import { DECISION_RULES } from './rules/decision.ts';
import { HEADER_RULES } from './rules/headers.ts';
import { MANIFEST_RULES } from './rules/manifests.ts';
import { VERIFIER_RULES } from './rules/verifier.ts';

export const RULES: readonly Rule[] = [
  ...ANSWER_RULES,
  ...CONTENT_RULES,
  ...CHAIN_RULES,
  ...DECISION_RULES,
  ...HEADER_RULES,
  ...CONNECTION_RULES,
  ...VERIFIER_RULES,
  ...MANIFEST_RULES,
];
