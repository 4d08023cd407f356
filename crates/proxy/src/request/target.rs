//! The one node that a request belongs to that cannot be split, and the request as that node gets it.

use crate::nodes::id::NodeId;
use crate::session::SessionFlags;
use crate::session::id::ClientId;
use crate::worker::Worker;
use respool_command::{Execute, Row};
use respool_route::{Plan, PlanError, Routed, plan};
use respool_wire::{ArgsBuf, Encoder, Protocol, Request, RequestDecoder, RequestLimits, Step, Strictness};
use std::sync::Arc;

/// Why a request has no one node, as an error's words.
fn words(write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut line = Vec::new();
    write(&mut Encoder::new(&mut line, Protocol::Resp2));
    line.get(1..line.len().saturating_sub(2)).unwrap_or_default().to_vec()
}

impl<E: Execute> Worker<E> {
    /// Where a request goes as a whole, and its arguments there. `Err`: the words of the error.
    pub(crate) fn home(
        &mut self,
        index: ClientId,
        row: &'static Row,
        request: &Request<'_>,
    ) -> Result<(NodeId, ArgsBuf), Vec<u8>> {
        let args = request.args;
        if self.clients.sessions.at(index).is_some_and(|s| s.flags.has(SessionFlags::ROUTED)) {
            return self.routed_home(index, row, request);
        }
        match plan(row, args, &self.config.topology, &mut self.scratch) {
            Ok(Plan::One(node)) => Ok((NodeId::of(node), args.iter().collect())),
            Ok(Plan::Split | Plan::All | Plan::Scan(_)) => Err(words(|e| PlanError::Unsupported.write(row, args, e))),
            Err(error) => Err(words(|e| error.write(row, args, e))),
        }
    }

    /// Where routes lead a request that one node answers, and its arguments there; it counts as sent there. `None`: several
    /// nodes answer, or none.
    pub(crate) fn routed_way(
        &mut self,
        index: ClientId,
        row: &'static Row,
        request: &Request<'_>,
    ) -> Option<(NodeId, ArgsBuf)> {
        let (args, routes) = (request.args, Arc::clone(&self.config.routes));
        let mut scratch = std::mem::take(&mut self.route_scratch);
        let planned = self.plan_routed(&routes, index, row, args, &mut scratch);
        let mut bytes = Vec::new();
        let node = match planned {
            Ok(Routed::One(place)) => {
                scratch.encode_one(&routes, place.route, args, request.raw, &mut bytes);
                self.note_route(place.route);
                Some(self.stand_in(index, &routes, place, row))
            }
            _ => None,
        };
        self.route_scratch = scratch;
        self.take_turns();
        let limits = RequestLimits::authenticated(Strictness::Strict);
        match RequestDecoder::new().decode(&bytes, &limits) {
            Ok(Step::Request(made)) => Some((node?, made.args.iter().collect())),
            _ => None,
        }
    }

    fn routed_home(
        &mut self,
        index: ClientId,
        row: &'static Row,
        request: &Request<'_>,
    ) -> Result<(NodeId, ArgsBuf), Vec<u8>> {
        let (args, routes) = (request.args, Arc::clone(&self.config.routes));
        let mut scratch = std::mem::take(&mut self.route_scratch);
        let home = match self.plan_routed(&routes, index, row, args, &mut scratch) {
            Ok(Routed::One(place)) => {
                let mut bytes = Vec::new();
                scratch.encode_one(&routes, place.route, args, request.raw, &mut bytes);
                let limits = RequestLimits::authenticated(Strictness::Strict);
                match RequestDecoder::new().decode(&bytes, &limits) {
                    Ok(Step::Request(made)) => Ok((NodeId::at(usize::from(place.node)), made.args.iter().collect())),
                    _ => Err(words(|e| PlanError::Unsupported.write(row, args, e))),
                }
            }
            Ok(Routed::Split | Routed::All(_) | Routed::Scan(..)) => {
                Err(words(|e| PlanError::Unsupported.write(row, args, e)))
            }
            Err(error) => Err(words(|e| error.write(&routes, row, args, e))),
        };
        self.route_scratch = scratch;
        home
    }
}
