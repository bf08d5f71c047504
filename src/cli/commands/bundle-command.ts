/** `proofgate bundle …`: bundles without a control plane. */
import { group } from '../define/define-command.ts';
import { bundleBreakGlassCommand } from './bundle/bundle-break-glass.ts';
import { bundleDiffCommand } from './bundle/bundle-diff.ts';
import { bundleFreshenCommand } from './bundle/bundle-freshen.ts';
import { bundleInspectCommand } from './bundle/bundle-inspect.ts';
import { bundleLintCommand } from './bundle/bundle-lint.ts';
import { bundleResetMarkCommand } from './bundle/bundle-reset-mark.ts';
import { bundleRoutesCommand } from './bundle/bundle-routes.ts';
import { bundleSignCommand } from './bundle/bundle-sign.ts';
import { bundleVerifyReceiptCommand } from './bundle/bundle-verify-receipt.ts';

export const bundleCommands = group('bundle', 'Sign, freshen, check and show bundles', [
  bundleSignCommand,
  bundleFreshenCommand,
  bundleLintCommand,
  bundleInspectCommand,
  bundleDiffCommand,
  bundleRoutesCommand,
  bundleResetMarkCommand,
  bundleBreakGlassCommand,
  bundleVerifyReceiptCommand,
]);
