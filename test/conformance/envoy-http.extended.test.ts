/** The conformance suite at Envoy with ext_authz over HTTP. */
import { ENVOY_HTTP } from '../support/points/envoy-http.ts';
import { conformanceSuite } from './suite.ts';

for (const driver of ENVOY_HTTP) conformanceSuite(driver, driver !== ENVOY_HTTP.at(-1));
