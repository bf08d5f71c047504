/** The smuggling corpus at Envoy with ext_authz over HTTP. */
import { ENVOY_HTTP } from '../support/points/envoy-http.ts';
import { smugglingSuite } from './suite.ts';

for (const driver of ENVOY_HTTP) smugglingSuite(driver, ['strict']);
