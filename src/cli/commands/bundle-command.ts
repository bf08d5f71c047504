/** `proofgate bundle …`: bundles without a control plane. */
import { type CliContext, defineGroup, type ProofgateCommand } from '../define-command.ts';
import { registerBundleDiff } from './bundle/bundle-diff.ts';
import { registerBundleFreshen } from './bundle/bundle-freshen.ts';
import { registerBundleInspect } from './bundle/bundle-inspect.ts';
import { registerBundleLint } from './bundle/bundle-lint.ts';
import { registerBundleResetMark } from './bundle/bundle-reset-mark.ts';
import { registerBundleSign } from './bundle/bundle-sign.ts';

export function registerBundle(parent: ProofgateCommand, context: CliContext): void {
  const group = defineGroup(parent, 'bundle', 'Sign, freshen, check and show bundles');
  registerBundleSign(group, context);
  registerBundleFreshen(group, context);
  registerBundleLint(group, context);
  registerBundleInspect(group, context);
  registerBundleDiff(group, context);
  registerBundleResetMark(group, context);
}
