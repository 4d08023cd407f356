//! The crate `valkey-glide`.

use super::{Failure, Peer, are_values};
use bytes::Bytes;

/// The client, of a server or of a cluster. Its bound of requests under way is raised beyond the callers that there are; its limit of
/// time is its own.
#[derive(Clone)]
pub(crate) struct Glide<C>(C);

fn glide_address(address: &str) -> glide::NodeAddress {
    let (host, port) = address.rsplit_once(':').expect("host and port");
    glide::NodeAddress::new(host, port.parse().expect("a port"))
}

/// Requests of a client of this crate that may be under way.
const GLIDE_REQUESTS_MAX: u32 = 1_000_000;

impl Glide<glide::GlideClient> {
    pub(crate) async fn connect(address: &str) -> Self {
        let config = glide::GlideClientConfiguration::new(vec![glide_address(address)]);
        let config = config.inflight_requests_limit(GLIDE_REQUESTS_MAX);
        Self(glide::GlideClient::connect(config).await.expect("a connection"))
    }
}

impl Glide<glide::GlideClusterClient> {
    pub(crate) async fn connect_cluster(addresses: &str) -> Self {
        let config = glide::GlideClusterClientConfiguration::new(addresses.split(',').map(glide_address).collect());
        let config = config.inflight_requests_limit(GLIDE_REQUESTS_MAX);
        Self(glide::GlideClusterClient::connect(config).await.expect("a connection"))
    }
}

/// A client of either kind has the same methods, by a trait of its own crate.
macro_rules! glide_peer {
    ($client:ty) => {
        impl Peer for Glide<$client> {
            async fn get_is(&mut self, key: &str, value: &[u8]) -> Result<bool, Failure> {
                use glide::AsyncCommands;
                let found: Option<Bytes> = self.0.get(key).await.map_err(|_| Failure::Maybe)?;
                Ok(found.as_deref() == Some(value))
            }

            async fn set(&mut self, key: &str, value: &[u8]) -> Result<(), Failure> {
                use glide::AsyncCommands;
                self.0.set(key, value).await.map_err(|_| Failure::Maybe)
            }

            async fn incr(&mut self, key: &str) -> Result<i64, Failure> {
                use glide::AsyncCommands;
                self.0.incr(key, 1).await.map_err(|_| Failure::Maybe)
            }

            async fn set_all(&mut self, pairs: &[(String, String)]) -> Result<(), Failure> {
                use glide::PipelineExt;
                let mut pipe = glide::pipe();
                for (key, value) in pairs {
                    pipe.cmd("SET").arg(key.as_str()).arg(value.as_str()).ignore();
                }
                pipe.query_async(&self.0).await.map_err(|_| Failure::Maybe)
            }

            async fn get_are(&mut self, pairs: &[(String, String)]) -> Result<bool, Failure> {
                use glide::PipelineExt;
                let mut pipe = glide::pipe();
                for (key, _) in pairs {
                    pipe.cmd("GET").arg(key.as_str());
                }
                let found: Vec<Bytes> = pipe.query_async(&self.0).await.map_err(|_| Failure::Maybe)?;
                Ok(are_values(found.iter(), pairs))
            }
        }
    };
}

glide_peer!(glide::GlideClient);
glide_peer!(glide::GlideClusterClient);
