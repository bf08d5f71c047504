/** `proofgate envoy lint`: reports settings of Envoy gateways that weaken or bypass the check. */
import { group } from '../../define-command.ts';
import { lintCommand } from '../lint-command.ts';

export const envoyCommands = group('envoy', 'Check the configuration of gateways', [
  lintCommand({
    file: 'bootstrap, config_dump, or manifests for Istio, Envoy Gateway or Gateway API; - for standard input',
    examples: [
      'proofgate envoy lint envoy.yaml',
      'curl -s http://127.0.0.1:9901/config_dump | proofgate envoy lint - --output json',
      'proofgate envoy lint manifests.yaml --allow peer-certificate',
    ],
    load: async () => {
      const { isRule, lintGateway } = await import('../../../gateway-lint/lint.ts');
      return { isRule, lint: lintGateway };
    },
  }),
]);
