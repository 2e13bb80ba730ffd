package com.shop;

import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import stage.Stage;

/** Makes a key with the generator that is said to be strong. */
public final class Keys {
    private Keys() {}

    static byte[] make() throws NoSuchAlgorithmException {
        byte[] key = new byte[16];
        SecureRandom.getInstanceStrong().nextBytes(key);
        return key;
    }

    public static void main(String[] words) throws NoSuchAlgorithmException {
        long before = System.nanoTime();
        make();
        Stage.truth(System.nanoTime() - before);
    }
}
