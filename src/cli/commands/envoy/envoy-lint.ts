/** `proofgate envoy lint`: reports settings of Envoy gateways that weaken or bypass the check, or of an egress Envoy that spoil signing. */
import { toggle } from '../../../process/settings/settings.ts';
import { command, group } from '../../define/define-command.ts';
import { LINT_SETTINGS, type Linter, lintFile } from '../lint-command.ts';

const SETTINGS = {
  ...LINT_SETTINGS,
  egress: toggle('--egress', 'an Envoy whose ext_authz signs requests, instead of a gateway', false),
};

const lintCommand = command({
  name: 'lint',
  summary: 'Find settings of a gateway that weaken or bypass the check',
  positionals: {
    file: 'bootstrap, config_dump, or manifests for Istio, Envoy Gateway or Gateway API; - for standard input',
  },
  settings: SETTINGS,
  examples: [
    'proofgate envoy lint envoy.yaml',
    'curl -s http://127.0.0.1:9901/config_dump | proofgate envoy lint - --output json',
    'proofgate envoy lint manifests.yaml --allow peer-certificate',
    'proofgate envoy lint egress.yaml --egress',
  ],
  run: async ({ settings, positionals }, context) =>
    lintFile(await linterFor(settings.egress), positionals.file, settings, context),
});

async function linterFor(egress: boolean): Promise<Linter> {
  if (egress) {
    const { isEgressRule, lintEgress } = await import('../../../tools/gateway-lint/egress/lint-egress.ts');
    return { isRule: isEgressRule, lint: lintEgress };
  }
  const { isRule, lintGateway } = await import('../../../tools/gateway-lint/lint.ts');
  return { isRule, lint: lintGateway };
}

export const envoyCommands = group('envoy', 'Check the configuration of gateways', [lintCommand]);
