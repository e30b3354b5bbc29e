// The 128 most significant bits of the powers of five from 5^0 down to 5^-64, the lower half first: for q < 0,
// 2^b / 5^-q rounded up, with b such that bit 127 is set (D. Lemire, "Number parsing at a gigabyte per second",
// Software: Practice and Experience 51 (2021), section 5).

#pragma once

#include "wide.hpp"

constexpr int MIN_EXPONENT = -64;

constexpr Wide POWERS_OF_FIVE[] = {
    {0x0000000000000000u, 0x8000000000000000u},  // 5^0
    {0xcccccccccccccccdu, 0xccccccccccccccccu},  // 5^-1
    {0x3d70a3d70a3d70a4u, 0xa3d70a3d70a3d70au},  // 5^-2
    {0x645a1cac083126eau, 0x83126e978d4fdf3bu},  // 5^-3
    {0xd3c36113404ea4a9u, 0xd1b71758e219652bu},  // 5^-4
    {0x0fcf80dc33721d54u, 0xa7c5ac471b478423u},  // 5^-5
    {0xa63f9a49c2c1b110u, 0x8637bd05af6c69b5u},  // 5^-6
    {0x3d32907604691b4du, 0xd6bf94d5e57a42bcu},  // 5^-7
    {0xfdc20d2b36ba7c3eu, 0xabcc77118461cefcu},  // 5^-8
    {0x31680a88f8953031u, 0x89705f4136b4a597u},  // 5^-9
    {0xb573440e5a884d1cu, 0xdbe6fecebdedd5beu},  // 5^-10
    {0xf78f69a51539d749u, 0xafebff0bcb24aafeu},  // 5^-11
    {0xf93f87b7442e45d4u, 0x8cbccc096f5088cbu},  // 5^-12
    {0x2865a5f206b06fbau, 0xe12e13424bb40e13u},  // 5^-13
    {0x538484c19ef38c95u, 0xb424dc35095cd80fu},  // 5^-14
    {0x0f9d37014bf60a11u, 0x901d7cf73ab0acd9u},  // 5^-15
    {0x4c2ebe687989a9b4u, 0xe69594bec44de15bu},  // 5^-16
    {0x09befeb9fad487c3u, 0xb877aa3236a4b449u},  // 5^-17
    {0x3aff322e62439fd0u, 0x9392ee8e921d5d07u},  // 5^-18
    {0x2b31e9e3d06c32e6u, 0xec1e4a7db69561a5u},  // 5^-19
    {0x88f4bb1ca6bcf585u, 0xbce5086492111aeau},  // 5^-20
    {0xd3f6fc16ebca5e04u, 0x971da05074da7beeu},  // 5^-21
    {0x5324c68b12dd6339u, 0xf1c90080baf72cb1u},  // 5^-22
    {0x75b7053c0f178294u, 0xc16d9a0095928a27u},  // 5^-23
    {0xc4926a9672793543u, 0x9abe14cd44753b52u},  // 5^-24
    {0x3a83ddbd83f52205u, 0xf79687aed3eec551u},  // 5^-25
    {0x95364afe032a819eu, 0xc612062576589ddau},  // 5^-26
    {0x775ea264cf55347eu, 0x9e74d1b791e07e48u},  // 5^-27
    {0x8bca9d6e188853fcu, 0xfd87b5f28300ca0du},  // 5^-28
    {0x096ee45813a04330u, 0xcad2f7f5359a3b3eu},  // 5^-29
    {0xa1258379a94d028du, 0xa2425ff75e14fc31u},  // 5^-30
    {0x80eacf948770ced7u, 0x81ceb32c4b43fcf4u},  // 5^-31
    {0x67de18eda5814af2u, 0xcfb11ead453994bau},  // 5^-32
    {0xecb1ad8aeacdd58eu, 0xa6274bbdd0fadd61u},  // 5^-33
    {0xbd5af13bef0b113eu, 0x84ec3c97da624ab4u},  // 5^-34
    {0x955e4ec64b44e864u, 0xd4ad2dbfc3d07787u},  // 5^-35
    {0xdde50bd1d5d0b9e9u, 0xaa242499697392d2u},  // 5^-36
    {0x7e50d64177da2e54u, 0x881cea14545c7575u},  // 5^-37
    {0x96e7bd358c904a21u, 0xd9c7dced53c72255u},  // 5^-38
    {0xabec975e0a0d081au, 0xae397d8aa96c1b77u},  // 5^-39
    {0x2323ac4b3b3da015u, 0x8b61313bbabce2c6u},  // 5^-40
    {0x6b6c46dec52f6688u, 0xdf01e85f912e37a3u},  // 5^-41
    {0x55f038b237591ed3u, 0xb267ed1940f1c61cu},  // 5^-42
    {0x77f3608e92adb242u, 0x8eb98a7a9a5b04e3u},  // 5^-43
    {0x8cb89a7db77c506au, 0xe45c10c42a2b3b05u},  // 5^-44
    {0x3d607b97c5fd0d22u, 0xb6b00d69bb55c8d1u},  // 5^-45
    {0xcab3961304ca70e8u, 0x9226712162ab070du},  // 5^-46
    {0xaab8f01e6e10b4a6u, 0xe9d71b689dde71afu},  // 5^-47
    {0x5560c018580d5d52u, 0xbb127c53b17ec159u},  // 5^-48
    {0xdde7001379a44aa8u, 0x95a8637627989aadu},  // 5^-49
    {0x963e66858f6d4440u, 0xef73d256a5c0f77cu},  // 5^-50
    {0xde98520472bdd033u, 0xbf8fdb78849a5f96u},  // 5^-51
    {0xe546a8038efe4029u, 0x993fe2c6d07b7fabu},  // 5^-52
    {0xd53dd99f4b3066a8u, 0xf53304714d9265dfu},  // 5^-53
    {0xaa97e14c3c26b886u, 0xc428d05aa4751e4cu},  // 5^-54
    {0x55464dd69685606bu, 0x9ced737bb6c4183du},  // 5^-55
    {0xeed6e2f0f0d56712u, 0xfb158592be068d2eu},  // 5^-56
    {0xf245825a5a445275u, 0xc8de047564d20a8bu},  // 5^-57
    {0x5b6aceaeae9d0ec4u, 0xa0b19d2ab70e6ed6u},  // 5^-58
    {0xe2bbd88bbee40bd0u, 0x808e17555f3ebf11u},  // 5^-59
    {0x3792f412cb06794du, 0xcdb02555653131b6u},  // 5^-60
    {0x5fa8c3423c052dd7u, 0xa48ceaaab75a8e2bu},  // 5^-61
    {0x1953cf68300424acu, 0x83a3eeeef9153e89u},  // 5^-62
    {0x8eec7f0d19a03aadu, 0xd29fe4b18e88640eu},  // 5^-63
    {0x3f2398d747b36224u, 0xa87fea27a539e9a5u},  // 5^-64
};
