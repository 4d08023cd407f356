//! XXH3 with 64 bits, without a seed: the digest of strings in `DIGEST`, `IFDEQ` and `IFDNE`.
//!
//! The algorithm has a way of its own for texts of up to 16, 128 and 240 bytes. Longer ones are taken in blocks of sixteen stripes of
//! 64 bytes, which go into eight sums. Its description is public (xxHash, BSD-2).

const SECRET: [u8; 192] = [
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4, 0x6d,
    0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0,
    0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0,
    0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b,
    0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac,
    0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51,
    0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34,
    0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb, 0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49,
    0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8,
    0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b,
    0x40, 0x7e,
];

const P32: [u64; 3] = [0x9e37_79b1, 0x85eb_ca77, 0xc2b2_ae3d];
const P64: [u64; 5] =
    [0x9e37_79b1_85eb_ca87, 0xc2b2_ae3d_27d4_eb4f, 0x1656_67b1_9e37_79f9, 0x85eb_ca77_c2b2_ae63, 0x27d4_eb2f_1656_67c5];
const MIX: [u64; 2] = [0x1656_6791_9e37_79f9, 0x9fb2_1c65_1e98_df25];

const STRIPE: usize = 64;
const STRIPES_PER_BLOCK: usize = (SECRET.len() - STRIPE) / 8;

fn read32(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes).into())
}

fn read64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn folded_product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

fn avalanche(mut hash: u64) -> u64 {
    hash ^= hash >> 37;
    hash = hash.wrapping_mul(MIX[0]);
    hash ^ hash >> 32
}

fn strong_avalanche(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(P64[1]);
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(P64[2]);
    hash ^ hash >> 32
}

/// The product of sixteen bytes with as many of the secret.
fn mix16(input: &[u8], at: usize, secret_at: usize) -> u64 {
    let low = read64(input, at) ^ read64(&SECRET, secret_at);
    folded_product(low, read64(input, at + 8) ^ read64(&SECRET, secret_at + 8))
}

fn short(input: &[u8]) -> u64 {
    let len = input.len();
    match len {
        9.. => {
            let low = read64(input, 0) ^ read64(&SECRET, 24) ^ read64(&SECRET, 32);
            let high = read64(input, len - 8) ^ read64(&SECRET, 40) ^ read64(&SECRET, 48);
            let sum = (len as u64).wrapping_add(low.swap_bytes()).wrapping_add(high);
            avalanche(sum.wrapping_add(folded_product(low, high)))
        }
        4.. => {
            let joined = read32(input, len - 4).wrapping_add(read32(input, 0) << 32);
            let mut hash = joined ^ read64(&SECRET, 8) ^ read64(&SECRET, 16);
            hash ^= hash.rotate_left(49) ^ hash.rotate_left(24);
            hash = hash.wrapping_mul(MIX[1]);
            hash ^= (hash >> 35).wrapping_add(len as u64);
            hash = hash.wrapping_mul(MIX[1]);
            hash ^ hash >> 28
        }
        1.. => {
            let (first, middle, last) = (input[0], input[len >> 1], input[len - 1]);
            let joined = u64::from(first) << 16 | u64::from(middle) << 24 | u64::from(last) | (len as u64) << 8;
            strong_avalanche(joined ^ read32(&SECRET, 0) ^ read32(&SECRET, 4))
        }
        0 => strong_avalanche(read64(&SECRET, 56) ^ read64(&SECRET, 64)),
    }
}

fn medium(input: &[u8]) -> u64 {
    let len = input.len();
    let mut hash = (len as u64).wrapping_mul(P64[0]);
    // From both ends towards the middle.
    for pair in (0..len.div_ceil(32)).rev() {
        hash = hash.wrapping_add(mix16(input, 16 * pair, 32 * pair));
        hash = hash.wrapping_add(mix16(input, len - 16 * (pair + 1), 32 * pair + 16));
    }
    avalanche(hash)
}

fn rather_long(input: &[u8]) -> u64 {
    const OFFSET: usize = 3;
    const LAST: usize = 136 - 17;
    let len = input.len();
    let sixteens = len / 16;
    let sum = |hash: u64, term: u64| hash.wrapping_add(term);
    let first = (0..8).map(|index| mix16(input, 16 * index, 16 * index)).fold((len as u64).wrapping_mul(P64[0]), sum);
    let rest = (8..sixteens).map(|index| mix16(input, 16 * index, 16 * (index - 8) + OFFSET));
    let hash = rest.fold(avalanche(first), sum);
    avalanche(hash.wrapping_add(mix16(input, len - 16, LAST)))
}

fn add_stripe(sums: &mut [u64; 8], stripe: &[u8], secret_at: usize) {
    for lane in 0..8 {
        let value = read64(stripe, 8 * lane);
        let keyed = value ^ read64(&SECRET, secret_at + 8 * lane);
        sums[lane ^ 1] = sums[lane ^ 1].wrapping_add(value);
        sums[lane] = sums[lane].wrapping_add((keyed & 0xffff_ffff).wrapping_mul(keyed >> 32));
    }
}

fn long(input: &[u8]) -> u64 {
    let mut sums = [P32[2], P64[0], P64[1], P64[2], P64[3], P32[1], P64[4], P32[0]];
    let block_bytes = STRIPE * STRIPES_PER_BLOCK;
    let blocks = (input.len() - 1) / block_bytes;
    for block in input[..blocks * block_bytes].chunks_exact(block_bytes) {
        for (index, stripe) in block.chunks_exact(STRIPE).enumerate() {
            add_stripe(&mut sums, stripe, 8 * index);
        }
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum = (*sum ^ *sum >> 47 ^ read64(&SECRET, SECRET.len() - STRIPE + 8 * lane)).wrapping_mul(P32[0]);
        }
    }
    let rest = &input[blocks * block_bytes..];
    let stripes = (rest.len() - 1) / STRIPE;
    for (index, stripe) in rest[..stripes * STRIPE].chunks_exact(STRIPE).enumerate() {
        add_stripe(&mut sums, stripe, 8 * index);
    }
    // The last stripe overlaps the one before.
    add_stripe(&mut sums, &input[input.len() - STRIPE..], SECRET.len() - STRIPE - 7);
    let merged = (0..4).map(|pair| {
        let low = sums[2 * pair] ^ read64(&SECRET, 11 + 16 * pair);
        folded_product(low, sums[2 * pair + 1] ^ read64(&SECRET, 19 + 16 * pair))
    });
    avalanche(merged.fold((input.len() as u64).wrapping_mul(P64[0]), u64::wrapping_add))
}

/// The digest of some bytes.
pub(crate) fn digest(input: &[u8]) -> u64 {
    match input.len() {
        0..=16 => short(input),
        17..=128 => medium(input),
        129..=240 => rather_long(input),
        _ => long(input),
    }
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn digests_are_those_of_xxhash() {
        // Computed with xxHash 0.8 for texts of these lengths.
        const KNOWN: &[(u64, u64)] = &[
            (0, 0x2d06_8005_38d3_94c2),
            (1, 0xe12e_f9d2_eb86_ceeb),
            (2, 0x226a_6fe8_9865_0564),
            (3, 0x2fd1_e2af_b724_fc1f),
            (4, 0x153d_706a_4d10_c5c3),
            (5, 0x4858_1867_e4b2_c143),
            (8, 0x3dde_443f_1cb7_196a),
            (9, 0xf658_a826_9dce_34a2),
            (15, 0x01e5_338b_34be_2988),
            (16, 0xb95a_313a_8d09_6e76),
            (17, 0x0949_aeea_30bb_89cb),
            (31, 0x70d6_df78_c4c6_36e5),
            (32, 0xa99b_0b22_5b02_8060),
            (33, 0xc308_7130_9a02_a1d2),
            (64, 0x61fd_795d_67a2_1350),
            (96, 0xc5bf_c4d9_3e7c_b199),
            (97, 0xa43d_43b2_0e0f_72ac),
            (128, 0xbb89_a83b_181f_f37b),
            (129, 0x3fda_9a1e_52e2_6f5c),
            (143, 0xa3b0_b801_c242_b10b),
            (144, 0x5e21_d0b4_60d1_bec4),
            (239, 0x9428_5493_f707_763f),
            (240, 0x05e1_7590_e0ef_b6f1),
            (241, 0x7e36_dffe_032c_9e2b),
            (255, 0x7f2a_086c_627e_0c62),
            (256, 0xe1e8_c219_caad_324e),
            (1023, 0xbdbf_62ad_378b_abd5),
            (1024, 0xa838_a40f_f165_5454),
            (1025, 0x2485_9f2e_42ae_87ba),
            (1088, 0x727a_4328_1237_5a3c),
            (2047, 0x5418_72d9_5847_252c),
            (2048, 0x607a_eb81_2824_65b2),
            (2049, 0xc56c_671a_a699_3fe7),
            (5000, 0x471d_b892_775c_b85b),
            (100003, 0x73a2_5d46_e67b_4eae),
        ];
        for (len, known) in KNOWN {
            let text: Vec<u8> = (0..*len).map(|at| ((at * at * 7 + at * 13 + len) % 251) as u8).collect();
            assert_eq!(digest(&text), *known, "{len} bytes");
        }
        assert_eq!(digest(b"hello"), 0x9555_e855_5c62_dcfd);
    }
}
