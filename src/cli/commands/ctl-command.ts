/** `proofgate ctl`: an operator's commands over Control's API. */
import { type CliContext, defineGroup, type ProofgateCommand } from '../define-command.ts';
import { registerCtlActions } from './ctl/ctl-actions.ts';
import { registerCtlApply } from './ctl/ctl-apply.ts';
import { registerCtlBlock } from './ctl/ctl-block.ts';
import { registerCtlGet } from './ctl/ctl-get.ts';
import { registerCtlLogin } from './ctl/ctl-login.ts';
import { registerCtlLogout } from './ctl/ctl-logout.ts';
import { registerCtlRetireSigningKey } from './ctl/ctl-retire-signing-key.ts';
import { registerCtlTargetToken } from './ctl/ctl-rotate-target-token.ts';
import { registerCtlSigningKeys } from './ctl/ctl-signing-keys.ts';

export function registerCtl(parent: ProofgateCommand, context: CliContext): void {
  const group = defineGroup(parent, 'ctl', 'Operate Control: sign in, declare a site, decide, revoke, look');
  registerCtlLogin(group, context);
  registerCtlLogout(group, context);
  registerCtlApply(group, context);
  registerCtlGet(group, context);
  registerCtlActions(group, context);
  registerCtlBlock(group, context);
  registerCtlSigningKeys(group, context);
  registerCtlRetireSigningKey(group, context);
  registerCtlTargetToken(group, context);
}
