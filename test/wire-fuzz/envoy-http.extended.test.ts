/** Generated requests at envoy-http. */
import { ENVOY_HTTP } from '../support/points/envoy-http.ts';
import { wireFuzz } from './suite.ts';

for (const driver of ENVOY_HTTP.slice(-1)) wireFuzz(driver);
