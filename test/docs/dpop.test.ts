/** Checks that the site file of docs/operate/dpop.md is one for Control, and that a bundle of it passes lint. */
import { expect, it } from '@jest/globals';
import { Compile } from 'typebox/compile';
import { parse, stringify } from 'yaml';
import { lintBundleYaml } from '../../src/bundle/authoring/lint-content.ts';
import { BUNDLE_FORMAT } from '../../src/bundle/format/bundle-limits.ts';
import { SITE_DECLARATION, type SiteDeclaration } from '../../src/control/contract/declaration-contract.ts';
import { blocksOf } from '../support/docs/blocks.ts';
import { readText } from '../support/docs/markdown.ts';
import { makeSigner } from '../support/fixtures/token-signer.ts';

const [block] = blocksOf('docs/operate/dpop.md');
const shown: Pick<SiteDeclaration, 'oauth_issuers' | 'routes'> = parse(block?.text ?? '');
const site: SiteDeclaration = { ...parse(readText('bundles/site.yaml')), ...shown };

it('declares a site', () => {
  expect([...Compile(SITE_DECLARATION).Errors(site)]).toEqual([]);
});

it('makes a bundle, with the keys that Control fetches', async () => {
  const { algorithm: alg, kid, publicKey } = makeSigner('RS256');
  const keys = [{ kid, alg, jwk: publicKey.export({ format: 'jwk' }) }];
  const content = {
    format: BUNDLE_FORMAT,
    auth_site: site.site.site_id,
    origins: site.site.origins,
    oauth_issuers: shown.oauth_issuers?.map((issuer) => ({ ...issuer, keys })),
    routes: shown.routes?.map(({ allowed_sources: _, ...route }) => route),
    route_sources: shown.routes?.map(({ allowed_sources, route_id }) => ({ route_id, allowed_sources })),
  };
  const options = { yamlText: stringify(content), fileName: 'bundle.yaml', nowSeconds: 1_795_233_600 };
  expect((await lintBundleYaml(options)).map(({ code }) => code)).toEqual(['dpop_unbound']);
});
