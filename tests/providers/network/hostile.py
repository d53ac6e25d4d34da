"""Hosts that somebody may try: spellings of addresses, addresses in addresses, URLs that two readers disagree on."""

from __future__ import annotations

# Cloud metadata, whatever the spelling: never, also where the allow list names everything.
METADATA = [
    "169.254.169.254", "169.254.169.254.", "169.254.169.253", "169.254.169.123", "169.254.170.2", "169.254.170.23",
    "169.254.0.23", "169.254.10.10", "169.254.42.42", "100.100.100.200", "168.63.129.16", "192.0.0.192",
    "[fd00:ec2::254]", "[FD00:EC2::254]", "[fd00:0ec2:0:0:0:0:0:254]", "[fd00:ec2::23]", "[fd00:ec2::250]",
    "[fd20:ce::254]", "[fd00:c1::a9fe:a9fe]", "[fd00:42::42]", "[fd00:a9fe:a9fe::1]", "[fd00:100::100:200]",
    "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[::FFFF:A9FE:A9FE]", "[::ffff:100.100.100.200]",
    "[::ffff:168.63.129.16]", "[::169.254.169.254]", "[::a9fe:a9fe]", "[::ffff:0:169.254.169.254]",
    "[64:ff9b::169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b::a83f:8110]", "[64:ff9b:1::a9fe:a9fe]",
    "[64:ff9b:1:ffff::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "[2002:a9fe:a9fe::1]", "[2002:a83f:8110::1]",
    "[2001:0:a9fe:a9fe::1]", "[2001:0:808:808:0:0:5601:5601]", "[fe80::a9fe:a9fe]", "[fe80::5efe:a9fe:a9fe]",
    "[2001:db8::5efe:a9fe:a9fe]", "[2a00:1450::200:5efe:169.254.169.254]",
    "metadata.google.internal", "METADATA.GOOGLE.INTERNAL", "metadata.google.internal.", "metadata.goog", "metadata",
    "instance-data", "instance-data.ec2.internal", "metadata.azure.internal", "metadata.azure.com",
    "metadata.tencentyun.com", "metadata.oraclecloud.com", "metadata.packet.net", "metadata.platformequinix.com",
    "rancher-metadata",
]  # fmt: skip

# Not public: only where the allow list names them.
INSIDE = [
    "127.0.0.1", "127.0.0.1.", "127.1.2.3", "127.255.255.254", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]", "[0:0:0:0:0:FFFF:7F00:0001]", "[::127.0.0.1]", "[::7f00:1]", "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2002:7f00:0001::1]",
    "[2001:0:7f00:1::1]", "[2001:0:808:808:0:0:80ff:fffe]",
    "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255",
    "[::ffff:10.0.0.1]", "[::ffff:192.168.1.1]", "[64:ff9b::10.0.0.1]", "[64:ff9b::c0a8:101]", "[2002:c0a8:101::1]",
    "[2002:a00:1::1]", "[fc00::1]", "[fd12:3456:789a::1]", "[fdff:ffff::1]", "[fec0::1]",
    "100.64.0.1", "100.127.255.254", "[::ffff:100.64.0.1]", "[64:ff9b::6440:1]",
    "169.254.0.1", "169.254.1.1", "169.254.255.254", "[fe80::1]", "[febf::1]", "[::ffff:169.254.1.1]",
    "0.0.0.0", "0.1.2.3", "[::]", "[0:0:0:0:0:0:0:0]", "[::ffff:0.0.0.0]", "[2002::1]",
    "224.0.0.1", "239.255.255.255", "[ff02::1]", "[ff0e::1]", "[::ffff:224.0.0.1]",
    "192.0.0.1", "192.0.0.170", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.7",
    "203.0.113.9", "240.0.0.1", "255.255.255.255", "[::8.8.8.8]", "[100::1]", "[64:ff9b:1::808:808]", "[2001::1]",
    "[2001:2::1]", "[2001:10::1]", "[2001:20::1]", "[2001:1ff::1]", "[2001:db8::1]", "[3fff::1]", "[5f00::1]",
    "[4000::1]", "[8000::1]",
]  # fmt: skip

# Spelt so that somebody may read another host.
ODD = [
    "", ".", "..", "2130706433", "2852039166", "017700000001", "0x7f000001", "0X7F000001", "0x7f.0x0.0x0.0x1", "0x7f.1",
    "127.1", "127.0.1", "0177.0.0.1", "0177.0.0.01", "127.0.0.01", "010.0.0.1", "127.0.0.0x1", "1.1.1.1.1", "1.1.1.256",
    "0x", "1", "0", "169.254.43518", "169.16689662", "0xa9fea9fe", "0xA9.0xFE.0xA9.0xFE", "0251.0376.0251.0376",
    "host.1", "host.0x1f", "127.0.0.1..", "minio..lan", ".minio.lan", "-minio.lan", "minio-.lan", "a" * 64 + ".lan",
    ".".join(["label"] * 50), "mi nio", "minio\tlan", "minio\nlan", "minio\x00.lan", "minio.lan\u200b", "minio*.lan",
    "*.lan", "min!o", "minio,lan", "minio;lan", "minio|lan", "$(id)", "`id`", "{host}", "'minio'", '"minio"', "<minio>",
    "\uff11\uff12\uff17.0.0.1", "127\u30020.0.1", "\u2460\u2461\u2466.0.0.1", "\u24db\u24de\u24d2alhost",
    "lo\u00adcalhost", "b\u00fccher.example", "\u0440aypal.example", "loc\u0130lhost", "\u212aafka.lan",
    "127%2e0%2e0%2e1", "%31%32%37.0.0.1", "localhos%74", "%6c%6f%63%61%6c%68%6f%73%74", "127.0.0.1%00", "%00",
    "::1", "fe80::1", "[::1", "::1]", "[]", "[::1]]", "[[::1]]", "[127.0.0.1]", "[localhost]", "[fe80::1%25eth0]",
    "[fe80::1%eth0]", "[fe80::1%251]", "[::1%lo]", "[v1.fe80]", "[::ffff:127.0.0.1.]", "[::ffff:0x7f.1]", "[1:2:3]",
    "[:::1]", "[12345::1]", "[::g]", "[::1].lan", "lan[::1]",
]  # fmt: skip

# Whole URLs.
URLS = [
    "", " ", "http", "http:", "http:/", "http://", "http:///path", "http://:80", "http://:80/", "https://#", "https://?",
    "//minio.lan", "minio.lan", "minio.lan:9000", "127.0.0.1:9000", "http:minio.lan", "http:/minio.lan", "://minio.lan",
    "http;//minio.lan", "http//minio.lan", " http://minio.lan", "http://minio.lan ", "http://minio.lan\n", "\thttp://m",
    "http://minio.lan/a b", "http://minio.lan\\@10.0.0.1", "http:\\\\minio.lan", "http://minio.lan\\.10.0.0.1",
    "http://8.8.8.8\r\nHost: 10.0.0.1", "http://user@8.8.8.8", "http://user:hunter2@8.8.8.8", "http://8.8.8.8@10.0.0.1",
    "http://8.8.8.8:80@10.0.0.1", "http://8.8.8.8#@10.0.0.1", "http://8.8.8.8?@10.0.0.1", "http://8.8.8.8/@10.0.0.1",
    "http://user:hunter2%408.8.8.8", "http://@8.8.8.8", "http://8.8.8.8?token=hunter2", "http://8.8.8.8#hunter2",
    "http://8.8.8.8:", "http://8.8.8.8:0", "http://8.8.8.8:65536", "http://8.8.8.8:99999", "http://8.8.8.8:-1",
    "http://8.8.8.8:+80", "http://8.8.8.8:8o", "http://8.8.8.8:80:80", "http://8.8.8.8:\u0668\u0660",
    "http://8.8.8.8: 80", "http://8.8.8.8:0x50", "http://8.8.8.8:hunter2", "http://8.8.8.8:000000080",
    "file:///etc/passwd", "file://localhost/etc/passwd", "ftp://8.8.8.8", "gopher://8.8.8.8:70/_x", "dict://8.8.8.8:11211",
    "unix:///var/run/docker.sock", "unix://var/run/docker.sock", "http+unix://%2Fvar%2Frun%2Fdocker.sock/info",
    "http://unix:/var/run/docker.sock", "unix:/run/x", "ldap://8.8.8.8", "jar:http://8.8.8.8!/", "data:text/plain,x",
    "javascript:alert(1)", "ws://8.8.8.8", "s3://bucket", "jdbc:mysql://8.8.8.8", "thrift://8.8.8.8", "tftp://8.8.8.8",
    "sftp://8.8.8.8", "netdoc:///etc/passwd", "view-source:http://8.8.8.8", "h\u200bttp://8.8.8.8", "HTTPX://8.8.8.8",
    "http://8.8.8.8/" + "x" * 2_048,
]  # fmt: skip
