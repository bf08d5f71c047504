/** The suite of tls-grpc.test.ts on the other versions of Envoy. */
import './tls-grpc.test.ts';
