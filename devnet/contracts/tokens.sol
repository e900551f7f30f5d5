// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// The least that is an ERC-20.
contract Coin {
    string public name = "Test Coin";
    string public symbol = "COIN";
    uint8 public constant decimals = 6;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;

    event Transfer(address indexed from, address indexed to, uint256 value);

    function mint(address to, uint256 value) external {
        totalSupply += value;
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        balanceOf[msg.sender] -= value;
        balanceOf[to] += value;
        emit Transfer(msg.sender, to, value);
        return true;
    }

    /// Pays the same to many accounts that follow each other.
    function spray(address first, uint256 count, uint256 value) external {
        balanceOf[msg.sender] -= count * value;
        for (uint160 i = 0; i < count; i++) {
            address to = address(uint160(first) + i);
            balanceOf[to] += value;
            emit Transfer(msg.sender, to, value);
        }
    }
}

/// Says its name in bytes32, as the oldest tokens do.
contract OldCoin {
    bytes32 public constant name = "Old Coin";
    bytes32 public constant symbol = "OLD";
    uint256 public constant totalSupply = 1000;

    function balanceOf(address) external pure returns (uint256) {
        return 0;
    }
}

interface Taker {
    function onERC721Received(address operator, address from, uint256 id, bytes calldata data) external returns (bytes4);
}

/// The least that is an ERC-721.
contract Item {
    string public name = "Test Item";
    string public symbol = "ITEM";
    mapping(uint256 => address) private owners;

    event Transfer(address indexed from, address indexed to, uint256 indexed id);

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7 || id == 0x80ac58cd || id == 0x5b5e139f;
    }

    function ownerOf(uint256 id) external view returns (address owner) {
        owner = owners[id];
        require(owner != address(0), "no such item");
    }

    function tokenURI(uint256) external pure returns (string memory) {
        return 'data:application/json,{"name":"an item"}';
    }

    function mint(address to, uint256 id) external {
        require(owners[id] == address(0), "exists");
        owners[id] = to;
        emit Transfer(address(0), to, id);
    }

    function transferFrom(address from, address to, uint256 id) public {
        require(owners[id] == from && msg.sender == from, "not yours");
        owners[id] = to;
        emit Transfer(from, to, id);
    }

    /// A contract must say that it knows what to do with an item.
    function safeTransferFrom(address from, address to, uint256 id) external {
        transferFrom(from, to, id);
        if (to.code.length == 0) return;
        require(Taker(to).onERC721Received(msg.sender, from, id, "") == 0x150b7a02, "not taken");
    }

    function burn(uint256 id) external {
        require(owners[id] == msg.sender, "not yours");
        owners[id] = address(0);
        emit Transfer(msg.sender, address(0), id);
    }
}

/// The least that is an ERC-1155.
contract Multi {
    mapping(uint256 => mapping(address => uint256)) private balances;

    event TransferSingle(
        address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value
    );
    event TransferBatch(
        address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] values
    );

    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0x01ffc9a7 || id == 0xd9b67a26;
    }

    function balanceOf(address account, uint256 id) external view returns (uint256) {
        return balances[id][account];
    }

    function uri(uint256) external pure returns (string memory) {
        return "ipfs://items/{id}.json";
    }

    function mint(address to, uint256 id, uint256 value) external {
        balances[id][to] += value;
        emit TransferSingle(msg.sender, address(0), to, id, value);
    }

    function transfer(address to, uint256 id, uint256 value) external {
        balances[id][msg.sender] -= value;
        balances[id][to] += value;
        emit TransferSingle(msg.sender, msg.sender, to, id, value);
    }

    function transferMany(address to, uint256[] calldata ids, uint256[] calldata values) external {
        for (uint256 i = 0; i < ids.length; i++) {
            balances[ids[i]][msg.sender] -= values[i];
            balances[ids[i]][to] += values[i];
        }
        emit TransferBatch(msg.sender, msg.sender, to, ids, values);
    }
}

/// Passes native coin on, in ways that a tracer must distinguish.
contract Relay {
    constructor() payable {}

    receive() external payable {}

    /// An internal transfer.
    function pass(address payable to) external payable {
        (bool done,) = to.call{value: msg.value}("");
        require(done, "not taken");
    }

    /// An internal transfer that is undone, though the transaction succeeds.
    function passInVain(address payable to) external payable {
        try this.passAndFail{value: msg.value}(to) {} catch {}
    }

    function passAndFail(address payable to) external payable {
        (bool done,) = to.call{value: msg.value}("");
        require(!done, "always");
    }

    /// Its own code again in its own place: the value beside the call moves nothing.
    function delegate(address payable to) external payable {
        (bool done,) = address(this).delegatecall(abi.encodeCall(this.pass, (to)));
        require(done, "failed");
    }

    function fail() external payable {
        revert("on purpose");
    }

    /// Makes a contract with an endowment, which another account receives when it ends.
    function makeAndEnd(address payable to) external payable {
        Ending made = new Ending{value: msg.value}();
        made.end(to);
    }
}

contract Ending {
    constructor() payable {}

    function end(address payable to) external {
        selfdestruct(to);
    }
}

/// Claims movements in forms that no standard has.
contract Babble {
    function supportsInterface(bytes4 id) external pure returns (bool) {
        return id == 0xd9b67a26;
    }

    /// Any log: that many topics, any data.
    function say(bytes32[] calldata topics, bytes calldata data) external {
        bytes memory copy = data;
        uint256 count = topics.length;
        bytes32[4] memory all;
        for (uint256 i = 0; i < count; i++) all[i] = topics[i];
        assembly {
            let from := add(copy, 32)
            let size := mload(copy)
            switch count
            case 0 { log0(from, size) }
            case 1 { log1(from, size, mload(all)) }
            case 2 { log2(from, size, mload(all), mload(add(all, 32))) }
            case 3 { log3(from, size, mload(all), mload(add(all, 32)), mload(add(all, 64))) }
            default { log4(from, size, mload(all), mload(add(all, 32)), mload(add(all, 64)), mload(add(all, 96))) }
        }
    }
}

/// As much of Multicall3 as reading needs.
contract Reader {
    struct Call3 {
        address target;
        bool allowFailure;
        bytes callData;
    }

    struct Result {
        bool success;
        bytes returnData;
    }

    function aggregate3(Call3[] calldata calls) external payable returns (Result[] memory results) {
        results = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            (results[i].success, results[i].returnData) = calls[i].target.call(calls[i].callData);
            require(results[i].success || calls[i].allowFailure, "failed");
        }
    }

    function getEthBalance(address account) external view returns (uint256) {
        return account.balance;
    }
}
